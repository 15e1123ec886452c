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

/// State of training: the content of a model file, the settings, the solver and the statistics of its rows. The files
/// of this folder define what a model file stores for `TrainOptions::resume`. Only this type writes `ModelFile::state`.
/// Not thread-safe.
template <typename Scalar>
struct TrainState {
  ModelFile file{};
  TrainSettings settings{};
  std::unique_ptr<TrainSolver<Scalar>> solver{};  ///< null before the first block of a fresh run
  std::optional<SampledPosterior> sampled{};      ///< of the model of the solver, if it is an average of samples
  double median_squared_norm = 0;  ///< median squared Euclidean norm of the first rows; see clip_outliers()
  /// Classification: evidence for the model against a constant probability, over all runs. Null: neither loaded nor
  /// saved.
  std::optional<ClassEvidence> evidence{ClassEvidence()};

  /// Creates the solver and restores it, `median_squared_norm` and `evidence` from `file.state`, which becomes empty.
  /// Throws DataError for the file `name` if the state is missing or damaged.
  void restore(const TrainOptions& options, const std::string& name, ThreadPool& pool,
               const std::function<bool()>& interrupted = {}, const FitProgress& progress = {});

  /// Writes the model, the settings and the state of the solver to `file`. `complete` may change the model before the
  /// state is written, or throw to reject it.
  void save(const std::function<void(Model<double>&)>& complete = {});

  /// Frees the model and the state that save() has written to `file`. Called after the file has been stored.
  void release_saved();

 private:
  void archive(Archive& archive);
};

/// The posterior that the Kalman solver stores in a model file.
struct SavedPosterior {
  KalmanFilter<double> filter;
  double median_squared_norm = 0;  ///< as in TrainState; 0 if the file has none

  /// `path` is used in messages. Throws std::invalid_argument if the model has no posterior, and DataError if the
  /// posterior is damaged.
  static SavedPosterior load(const ModelFile& file, const std::string& path);
};

}  // namespace dyad
