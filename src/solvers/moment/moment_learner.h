#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <dyad/moment.h>

#include "solvers/moment/one_scan_solver.h"

namespace dyad {

/// Rows in the first update: 6kd, or fewer where that is a long wait. A step from too few rows falls short of the whole
/// way, and the batches grow from there.
Index usual_batch(Index rank, Index dim);

/// The one-scan solver for data that keeps no promises. Every step is tried on fresh rows before it is taken: along the
/// way from the old model to the new one the prediction is linear, so those rows tell how far to go. Where features are
/// independent that is all the way, which is the paper's algorithm; where they are not, less, or nowhere. Steps that
/// fall short are noise or bias, and the batches grow. The model is never worse than the best constant, up to what the
/// rows since its last change can tell.
template <typename Scalar>
class MomentLearner {
 public:
  /// Targets are expected to have mean 0 and variance 1, roughly. `batch`: rows in the first update, unless the usual.
  /// Where features are known to be independent, every step is taken whole, with no rows to try it on.
  MomentLearner(const MomentOptions& options, std::optional<Index> batch, ThreadPool& pool,
                bool features_are_independent = false);

  /// Predicts each row before it is learned, and writes y - f(x).
  void learn(const Rows<Scalar>& rows, std::span<Scalar> residuals);

  void grow(Index dim, Index left_dim);

  /// What to predict with from here on.
  [[nodiscard]] Model<Scalar> model() const;

  [[nodiscard]] double target_mean() const { return target_mean_; }  ///< of all rows so far
  [[nodiscard]] bool is_trying() const { return proposed_.has_value(); }
  [[nodiscard]] Index steps_tried() const { return steps_tried_; }
  [[nodiscard]] Index steps_taken() const { return steps_taken_; }
  [[nodiscard]] bool is_constant() const { return steps_taken_ == 0 || is_worse_than_constant(); }
  [[nodiscard]] Index rows_until_step() const;  ///< rows still missing from the batch
  /// Rows after which the model may change: those missing from the batch, or from the trial of a step.
  [[nodiscard]] Index rows_until_decision() const {
    return std::max<Index>(1, proposed_ ? trial_rows() - trial_.rows : batch_rows() - rows_in_batch_);
  }

  /// Saving drops sums that have overflowed: they could not be loaded again.
  void archive(Archive& archive);

  /// In place of learn(), for rows in many places: each gathers what its part of them says about the present model, or
  /// about the step that is being tried; the sum of all is applied in one. Rows of an open batch are forgotten.
  void start_part();
  void gather(const Rows<Scalar>& rows);
  /// Numbers that add over parts, whatever they are; loading: those of all parts, which are applied.
  void archive_part(Archive& archive);

 private:
  /// Weighted squares of residuals on fresh rows.
  struct Trial {
    Index rows = 0;
    double before = 0;  ///< sum r^2
    double both = 0;    ///< sum r r'
    double after = 0;   ///< sum r'^2

    void archive(Archive& archive);
  };
  /// How the present model has done on rows it had not seen, beside the mean of the targets so far.
  struct Record {
    Index rows = 0;
    double squares = 0;
    double squares_of_constant = 0;
  };

  [[nodiscard]] Index batch_rows() const;
  [[nodiscard]] Index trial_rows() const;
  [[nodiscard]] bool is_worse_than_constant() const;
  void try_out(const Rows<Scalar>& rows, std::span<Scalar> residuals);
  void keep_record(const Rows<Scalar>& rows, std::span<const Scalar> residuals);
  std::pair<double, double> add_to_record(const Rows<Scalar>& rows, std::span<const Scalar> residuals, std::size_t i);
  void propose();
  void decide();
  void take(const Model<Scalar>& model);
  void start_again();
  void drop_overflow();

  MomentOptions options_;
  std::optional<Index> batch_;
  bool features_are_independent_;
  double batch_growth_ = 1;
  OneScan<Scalar> one_scan_;
  Index rows_in_batch_ = 0;
  std::optional<Model<Scalar>> proposed_;
  bool proposed_is_a_part_ = false;
  Trial trial_;
  Record record_;
  double target_weight_ = 0;
  double target_mean_ = 0;
  double part_weight_ = 0;
  double part_target_ = 0;  ///< sum of the part's targets
  Index steps_tried_ = 0;
  Index steps_taken_ = 0;
};

}  // namespace dyad
