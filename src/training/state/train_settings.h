#pragma once

#include <map>
#include <string>

#include <dyad/train.h>

#include "serialization/model_file.h"

namespace dyad {

/// What a training run has decided, and a model file remembers for the run that resumes it.
struct TrainSettings {
  Solver solver = Solver::automatic;
  Index rank = 8;
  std::optional<Diagonal> diagonal;  ///< decided by the first block
  std::optional<Index> batch;
  Precision precision = Precision::double_precision;
  std::uint64_t seed = 1;
  Index half_life = 0;           ///< rows; 0: nothing is forgotten
  bool watches_moments = false;  ///< decided by the first block
  Index rows = 0;                ///< learned so far, in all runs

  static TrainSettings fresh(const TrainOptions& options, ModelFile& file);

  /// As a model file remembers them. Throws DataError where it does not.
  static TrainSettings saved(const ModelFile& file, const std::string& path);

  /// The same, for a run that goes on. Throws std::invalid_argument for an option that does not agree with the model.
  static TrainSettings resumed(const TrainOptions& options, const ModelFile& file);

  [[nodiscard]] std::map<std::string, std::string> to_text() const;
};

}  // namespace dyad
