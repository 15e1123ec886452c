#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serialization/model_file.h"
#include "training/one_pass/class_evidence.h"
#include "training/state/train_settings.h"
#include "training/state/train_solver.h"

namespace dyad {

/// State of training: the content of a model file, the settings, the solver and the scales. This type is the only one
/// that reads or writes `ModelFile::state`. Not thread-safe.
template <typename Scalar>
struct TrainState {
  ModelFile file{};
  TrainSettings settings{};
  std::unique_ptr<TrainSolver<Scalar>> solver{};  ///< null before the first block of a fresh run
  double usual_length = 0;                        ///< median squared length of the first rows
  /// Classification: evidence of all runs. Null: neither loaded nor saved.
  std::optional<ClassEvidence> evidence{ClassEvidence()};

  /// Makes the solver and restores it, the scales and the evidence from `file.state`, which becomes empty. Throws
  /// DataError, naming `name`, if the state is missing or damaged.
  void restore(const TrainOptions& options, const std::string& name, ThreadPool& pool,
               const std::function<bool()>& interrupted = {});

  /// Writes the model, the settings and the state of the solver to `file`. `complete` may change the model, or refuse
  /// it by an exception, before the state is written.
  void save(const std::function<void(Model<double>&)>& complete = {});

  /// Frees what save() has written, after the file has been stored.
  void release_saved();

 private:
  void archive(Archive& archive);
};

/// The posterior that a Kalman solver left in a model file, and the median squared length of the first rows (0 if the
/// file has none).
struct SavedPosterior {
  KalmanFilter<double> filter;
  double usual_length = 0;

  /// `path` is used in messages. Throws std::invalid_argument if the model has no posterior, and DataError if the
  /// posterior is damaged.
  static SavedPosterior load(const ModelFile& file, const std::string& path);
};

}  // namespace dyad
