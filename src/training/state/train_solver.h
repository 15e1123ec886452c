#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dyad/train.h>

#include "base/archive.h"
#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "solvers/kalman/filter.h"
#include "solvers/moment/moment_learner.h"
#include "training/one_pass/stream_learner.h"
#include "training/state/train_settings.h"

namespace dyad {

/// What the training loop needs of a solver. Predictions are scaled targets or, for classes, log-odds.
template <typename Scalar>
class TrainSolver {
 public:
  virtual ~TrainSolver() = default;

  /// Predicts each row before it is learned.
  virtual void learn(const Rows<Scalar>& rows, std::span<double> predictions) = 0;
  /// Whether row i of the last learn() was predicted by a constant.
  [[nodiscard]] virtual bool is_by_constant(std::size_t) const { return false; }
  virtual void grow(Index dim, Index left_dim) = 0;
  /// The target's range has been broken by the data.
  virtual void give_up_range() {}
  /// The model from here on; what it takes to make it is done now.
  virtual Model<double> model() = 0;
  virtual void archive(Archive& archive) = 0;

  /// What one pass has left, where rows may be read again; and what they have made of it.
  [[nodiscard]] virtual const StreamLearner<Scalar>* stream() const { return nullptr; }
  virtual void promote(KalmanFilter<Scalar>) {}

  /// Whose sums add over parts of the rows; nothing: some other solver.
  [[nodiscard]] virtual MomentLearner<Scalar>* moments() { return nullptr; }

  [[nodiscard]] virtual bool is_constant() const { return false; }
  /// Why the model is a constant, where it is.
  [[nodiscard]] virtual std::string why_constant() const { return {}; }
  [[nodiscard]] virtual std::string plan() const = 0;    ///< one line: what it does with such data, and why
  [[nodiscard]] virtual std::string origin() const = 0;  ///< one line: where the model comes from
  /// The standard deviation of what it cannot explain, of scaled targets; 0: it does not know.
  [[nodiscard]] virtual double noise() const { return 0; }
  [[nodiscard]] virtual Index extra_row_reads() const { return 0; }  ///< beyond one look at each row
};

/// `first`: the first rows, which decide about the start; nothing where a state will be loaded.
template <typename Scalar>
std::unique_ptr<TrainSolver<Scalar>> make_train_solver(const TrainOptions& options, const TrainSettings& settings,
                                                       const FeatureMap& map, ThreadPool& pool,
                                                       const RowBlock<Scalar>* first,
                                                       const std::function<bool()>& interrupted);

/// The square of a category is the category itself; that of a number is worth a weight.
template <typename Scalar>
Diagonal usual_diagonal(const FeatureMap& map, const RowBlock<Scalar>& first);

/// Whether the moments of such rows are worth following: dense ones with numbers for targets.
template <typename Scalar>
bool moments_carry_signal(const RowBlock<Scalar>& first, Task task);

/// Options of the filter and of the Kalman solver for data of this map.
KalmanOptions kalman_options(const TrainSettings& settings, const FeatureMap& map);
StreamOptions stream_options(const TrainOptions& options, const TrainSettings& settings, const FeatureMap& map);

}  // namespace dyad
