#pragma once

#include <map>
#include <string>

#include <dyad/train.h>

#include "serialization/model_file.h"

namespace dyad {

/// Resolved settings of a training run. A model file stores them as text, so that `TrainOptions::resume` continues with
/// the same settings.
struct TrainSettings {
  Solver solver = Solver::automatic;
  Index rank = 8;
  std::optional<Diagonal> diagonal;  ///< null: chosen by default_diagonal() from the first block
  std::optional<Index> batch;        ///< rows in the first update of the moment solver; null: its default
  Precision precision = Precision::double_precision;
  std::uint64_t seed = 1;
  Index half_life = 0;        ///< number of rows after which the weight of a row has halved; 0: weights are constant
  bool has_curves = true;     ///< as TrainOptions::has_curves
  bool uses_moments = false;  ///< the moment solver runs beside the filters; see can_use_moments()
  Index rows = 0;             ///< number of rows learned in all runs; 0: no training state

  /// Settings of a run that does not resume a model. Sets the kind, precision and target range of `file`.
  static TrainSettings make(const TrainOptions& options, ModelFile& file);

  /// Settings that a model file stores. `path` is used in messages. Throws DataError if one is missing or invalid.
  static TrainSettings load(const ModelFile& file, const std::string& path);

  /// Settings of a run that resumes the model of `file`. Throws std::invalid_argument if an option differs from them.
  static TrainSettings resume(const TrainOptions& options, const ModelFile& file);

  /// The text that a model file stores, by name.
  [[nodiscard]] std::map<std::string, std::string> to_text() const;
};

}  // namespace dyad
