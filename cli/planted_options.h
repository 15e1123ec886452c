#pragma once

#include <dyad/recover.h>

#include "command.h"
#include "enum_names.h"

namespace dyad::cli {

inline const Choices<Signs> sign_choices{{"mixed", Signs::mixed}, {"positive", Signs::positive}};
inline const Choices<FeatureDistribution> feature_choices{{"gaussian", FeatureDistribution::gaussian},
                                                          {"uniform", FeatureDistribution::uniform},
                                                          {"skewed", FeatureDistribution::skewed},
                                                          {"rademacher", FeatureDistribution::rademacher}};

/// Options of the planted problem, for recover and simulate.
class PlantedArguments {
 public:
  /// Adds KIND and the options. `problem` must outlive the parser.
  void add_to(CLI::App& subcommand, PlantedOptions& problem);

  /// Sets defaults that depend on other options, and validates. Call it after the parse.
  void complete(PlantedOptions& problem) const;

 private:
  CLI::Option* rank_ = nullptr;
};

/// Number of features as text: "100", or "60x80" for bilinear problems.
std::string format_dims(const PlantedOptions& problem);

}  // namespace dyad::cli
