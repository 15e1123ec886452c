#pragma once

#include <dyad/recover.h>

#include "command.h"
#include "enum_names.h"

namespace dyad::cli {

inline const Choices<Signs> all_signs{{"mixed", Signs::mixed}, {"positive", Signs::positive}};
inline const Choices<Features> all_features{{"gaussian", Features::gaussian},
                                            {"uniform", Features::uniform},
                                            {"skewed", Features::skewed},
                                            {"rademacher", Features::rademacher}};

/// KIND and the options that say what is planted, for `recover` and `simulate`.
class PlantedArguments {
 public:
  void add_to(CLI::App& verb, PlantedOptions& problem);

  /// What depends on more than one option. Call it once they are all read.
  void complete(PlantedOptions& problem) const;

 private:
  CLI::Option* rank_ = nullptr;
};

/// "60x80" or "100".
std::string dims(const PlantedOptions& problem);

}  // namespace dyad::cli
