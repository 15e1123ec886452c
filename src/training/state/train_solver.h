#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dyad/train.h>

#include "base/archive.h"
#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "model/anova_model.h"
#include "solvers/kalman/filter.h"
#include "solvers/moment/moment_learner.h"
#include "training/one_pass/stream_learner.h"
#include "training/state/train_settings.h"

namespace dyad {

/// Interface of the one-pass solvers to the training loop. Predictions are scaled targets or, for classification,
/// log-odds. Not thread-safe.
template <typename Scalar>
class TrainSolver {
 public:
  virtual ~TrainSolver() = default;

  /// Predicts each row before it is learned, and learns all rows.
  virtual void learn(const Rows<Scalar>& rows, std::span<double> predictions) = 0;
  /// Whether row i of the last learn() was predicted by a constant, because there was no model yet.
  [[nodiscard]] virtual bool predicted_by_constant(std::size_t) const { return false; }
  /// Increases the number of features. `left_dim`: number of features of the left side; 0 unless bilinear.
  virtual void grow(Index dim, Index left_dim) = 0;
  /// Sets the prior groups of the last features, which have no data.
  virtual void set_feature_groups(std::span<const std::int32_t>) {}
  /// Removes the range of the target from the likelihood, because some target lies outside of it.
  virtual void remove_target_range() {}
  /// Returns the current model. May first fit buffered rows.
  virtual Model<double> model() = 0;
  virtual void archive(Archive& archive) = 0;
  /// ANOVA model, which replaces model(); null for solvers of low-rank models. May first fit cached rows.
  virtual const AnovaModel* anova() { return nullptr; }
  /// Sets the clipping of columns in the map of the model to that of the training rows. Called before the model is
  /// saved.
  virtual void set_clipping(FeatureMap&) const {}
  /// Fits all cached rows. Called after the last row, before the model is saved.
  virtual void finish_pass() {}
  /// Whether finish_pass() was interrupted before the fit was complete.
  [[nodiscard]] virtual bool was_interrupted() const { return false; }
  /// Whether learn() predicts rows by a model. False for solvers that fit all rows at the end.
  [[nodiscard]] virtual bool predicts_rows() const { return true; }
  /// Calls visit(target, predictor, weight) for all cached rows, with predictors whose errors estimate those on other
  /// rows. For solvers that do not predict rows in learn().
  virtual void for_each_fitted(const std::function<void(double, double, double)>&) const {}

  /// Start of multi-pass training; null if the solver does not support it.
  [[nodiscard]] virtual const StreamLearner<Scalar>* stream() const { return nullptr; }
  /// Replaces the filter.
  virtual void promote(KalmanFilter<Scalar>, typename StreamLearner<Scalar>::Origin) {}

  /// The moment solver, for distributed training; null for other solvers.
  [[nodiscard]] virtual MomentLearner<Scalar>* moments() { return nullptr; }

  /// Whether the current model is a constant.
  [[nodiscard]] virtual bool is_constant() const { return false; }
  /// Warning that states why the model is a constant.
  [[nodiscard]] virtual std::string constant_reason() const { return {}; }
  [[nodiscard]] virtual std::string plan() const = 0;    ///< one line: what the solver does with this data
  [[nodiscard]] virtual std::string origin() const = 0;  ///< one line: what the model was fitted by
  /// Warning about the rows that the model was fitted to; empty: none.
  [[nodiscard]] virtual std::string warning() const { return {}; }
  /// Estimated standard deviation of the noise, in units of scaled targets; 0: unknown.
  [[nodiscard]] virtual double noise() const { return 0; }
  /// Number of rows read in addition to the first pass.
  [[nodiscard]] virtual Index extra_row_reads() const { return 0; }
};

/// Progress of a fit of cached rows: level, objective per row and loss of other rows.
using FitProgress = std::function<void(const std::string&, double, double)>;

/// Creates the solver of the settings. `first`: the first block, which determines the start; null if a saved state will
/// be loaded. The solver refers to `pool`; the caller keeps it alive.
template <typename Scalar>
std::unique_ptr<TrainSolver<Scalar>> make_train_solver(const TrainOptions& options, const TrainSettings& settings,
                                                       const FeatureMap& map, ThreadPool& pool,
                                                       const RowBlock<Scalar>* first,
                                                       const std::function<bool()>& interrupted,
                                                       const FitProgress& progress = {});

/// Diagonal of M unless the options give one. `zero` for categories and flags, because the square of an indicator is
/// the indicator itself. `free` if there are numeric features. Other kinds than gfm have a tied diagonal.
template <typename Scalar>
Diagonal default_diagonal(const FeatureMap& map, const RowBlock<Scalar>& first);

/// Whether the moment solver can run beside the filters: for dense rows and numeric targets.
template <typename Scalar>
bool can_use_moments(const RowBlock<Scalar>& first, Task task);

/// Prior groups of the features of a map: those of FeatureMap::group_of(), or the sides of a bilinear model.
FilterGroups prior_groups(const FeatureMap& map);
/// Options of a Kalman filter for rows of this map.
KalmanOptions kalman_options(const TrainSettings& settings, const FeatureMap& map);
/// Options of the one-pass solver for rows of this map.
StreamOptions stream_options(const TrainOptions& options, const TrainSettings& settings, const FeatureMap& map);

}  // namespace dyad
