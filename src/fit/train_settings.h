#pragma once

#include <map>
#include <string>

#include <dyad/train.h>

#include "model/model_file.h"

namespace dyad {

/// What a training run has decided, and a model file remembers for the run that resumes it.
struct TrainSettings {
  Index rank = 8;
  std::optional<Diagonal> diagonal;  ///< decided by the first block
  std::optional<Index> batch;
  Precision precision = Precision::double_precision;
  std::uint64_t seed = 1;
  Index rows = 0;  ///< learned so far, in all runs

  static TrainSettings fresh(const TrainOptions& options, ModelFile& file);

  /// Throws std::invalid_argument for an option that does not agree with the model.
  static TrainSettings resumed(const TrainOptions& options, const ModelFile& file);

  [[nodiscard]] std::map<std::string, std::string> to_text() const;
};

}  // namespace dyad
