#include "solvers/moment/moment_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/low_rank.h"
#include "solvers/moment/step.h"

namespace dyad {
namespace {

/// (1 - fraction) before + fraction after, truncated to rank k.
template <typename Scalar>
Model<Scalar> interpolate(const Model<Scalar>& before, const Model<Scalar>& after, Scalar fraction,
                          EigenvalueSelection selection) {
  const Sides sides(before);
  const Index k = before.rank();
  Model<Scalar> model = before;
  const auto mix = [&](Scalar a, Scalar b) { return (1 - fraction) * a + fraction * b; };
  const auto mix_all = [&](std::vector<Scalar>& numbers, const std::vector<Scalar>& others) {
    std::transform(numbers.begin(), numbers.end(), others.begin(), numbers.begin(), mix);
  };
  model.intercept = mix(before.intercept, after.intercept);
  mix_all(model.weights, after.weights);
  mix_all(model.squares, after.squares);
  Matrix<Scalar> core = Matrix<Scalar>::Zero(2 * k, 2 * k);
  core.diagonal() << (1 - fraction) * as_vector(before.spectrum), fraction * as_vector(after.spectrum);
  const auto U = as_row_major(before.factors, before.dim(), k);
  const auto V = as_row_major(after.factors, after.dim(), k);
  set_interactions(model, truncate_to_rank<Scalar>(sides, concatenate_columns<Scalar>(U, V), core, k, selection));
  if (!model.squares.empty()) {
    // The coefficient of x_j^2 is M_jj + squares_j. The truncation of M does not change it.
    const Vector<Scalar> mixed =
        (1 - fraction) * diagonal_of_interactions(before) + fraction * diagonal_of_interactions(after);
    as_vector(model.squares) += mixed - diagonal_of_interactions(model);
  }
  return model;
}

}  // namespace

Index default_batch_rows(Index rank, Index dim) {
  // Close to the batch size that minimizes the number of rows to a given error (measured in docs/paper.md).
  constexpr Index rows_per_factor_entry = 6;
  // Bounds the number of rows before the first update. Sensitivity: docs/constants.md.
  constexpr Index max_first_batch_rows = 4096;
  return std::min(rows_per_factor_entry * rank * dim, max_first_batch_rows);
}

template <typename Scalar>
MomentLearner<Scalar>::MomentLearner(const MomentOptions& options, std::optional<Index> first_batch_rows,
                                     ThreadPool& pool)
    : options_(options),
      first_batch_rows_(first_batch_rows),
      one_scan_(options, random_start<Scalar>(options, options.shape.rank), pool) {}

template <typename Scalar>
Index MomentLearner<Scalar>::batch_rows() const {
  const Index default_rows = default_batch_rows(one_scan_.model().rank(), one_scan_.model().dim());
  return static_cast<Index>(static_cast<double>(first_batch_rows_.value_or(default_rows)) * batch_growth_);
}

template <typename Scalar>
Index MomentLearner<Scalar>::line_search_rows() const {
  // The line search estimates one number, the step fraction. It needs fewer rows than the batch. Sensitivity:
  // docs/constants.md.
  constexpr Index min_line_search_rows = 48;
  constexpr Index batch_rows_per_line_search_row = 8;  // sensitivity: docs/constants.md
  return std::max(min_line_search_rows, batch_rows() / batch_rows_per_line_search_row);
}

template <typename Scalar>
Index MomentLearner<Scalar>::rows_until_step() const {
  return proposal_ ? 0 : std::max<Index>(0, batch_rows() - rows_in_batch_);
}

template <typename Scalar>
void MomentLearner<Scalar>::grow(Index dim, Index left_dim) {
  const Model<Scalar>& model = one_scan_.model();
  const FeatureGrowth growth{.left_before = model.is_bilinear() ? model.left_dim : model.dim(),
                             .right_before = model.is_bilinear() ? model.dim() - model.left_dim : 0,
                             .left_after = model.is_bilinear() ? left_dim : dim,
                             .right_after = model.is_bilinear() ? dim - left_dim : 0};
  if (growth.is_empty()) return;
  one_scan_.grow(growth);
  if (proposal_) grow_model(*proposal_, growth);
}

template <typename Scalar>
void MomentLearner<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> residuals) {
  for (Index first = 0; first < rows.count();) {
    const Index count = std::min(rows_until_decision(), rows.count() - first);
    const Rows<Scalar> slice = rows.slice(first, count);
    const auto slice_residuals = residuals.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    if (proposal_)
      evaluate_proposal(slice, slice_residuals);
    else
      one_scan_.observe(slice, slice_residuals);
    update_comparison(slice, slice_residuals);
    if (proposal_) {
      if (line_search_.rows >= line_search_rows()) finish_line_search();
    } else {
      rows_in_batch_ += count;
      if (rows_in_batch_ >= batch_rows() && one_scan_.batch_weight() > 0) propose();
    }
    first += count;
  }
}

/// Writes the residuals of the current model and adds the rows to the sums of the line search.
template <typename Scalar>
void MomentLearner<Scalar>::evaluate_proposal(const Rows<Scalar>& rows, std::span<Scalar> residuals) {
  std::vector<Scalar> after(residuals.size());
  one_scan_.model().predict(rows, residuals);
  proposal_->predict(rows, after);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] = rows.targets()[i] - residuals[i];
    const auto r = static_cast<double>(residuals[i]);
    const auto proposed_r = static_cast<double>(rows.targets()[i] - after[i]);
    const auto weight = static_cast<double>(rows.weight(static_cast<Index>(i)));
    line_search_.before += weight * r * r;
    line_search_.cross += weight * r * proposed_r;
    line_search_.after += weight * proposed_r * proposed_r;
  }
  line_search_.rows += rows.count();
}

/// Adds the rows to the comparison with the mean, and to the mean.
template <typename Scalar>
void MomentLearner<Scalar>::update_comparison(const Rows<Scalar>& rows, std::span<const Scalar> residuals) {
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const auto [weight, target] = add_to_comparison(rows, residuals, i);
    target_weight_ += weight;
    if (target_weight_ > 0) target_mean_ += weight * (target - target_mean_) / target_weight_;
  }
}

/// Adds row i. Returns its weight and target.
template <typename Scalar>
std::pair<double, double> MomentLearner<Scalar>::add_to_comparison(const Rows<Scalar>& rows,
                                                                   std::span<const Scalar> residuals, std::size_t i) {
  const auto weight = static_cast<double>(rows.weight(static_cast<Index>(i)));
  const auto target = static_cast<double>(rows.targets()[i]);
  const auto residual = static_cast<double>(residuals[i]);
  comparison_.squares += weight * residual * residual;
  comparison_.squares_of_constant += weight * (target - target_mean_) * (target - target_mean_);
  ++comparison_.rows;
  return {weight, target};
}

/// Ends the batch and starts the line search of the updated model.
template <typename Scalar>
void MomentLearner<Scalar>::propose() {
  rows_in_batch_ = 0;
  Model<Scalar> next = one_scan_.model();
  if (!one_scan_.end_batch(next).is_accepted) {
    ++steps_tried_;
    return;
  }
  proposal_ = std::move(next);
  line_search_ = {};
}

/// Accepts the proposed model, shortens the step and starts another line search, rejects it, or restarts from the mean.
template <typename Scalar>
void MomentLearner<Scalar>::finish_line_search() {
  const LineSearch line_search = std::exchange(line_search_, {});
  const Model<Scalar> proposed = *std::exchange(proposal_, std::nullopt);
  // A model without intercept can be worse than the mean of the targets before it converges. Only models with an
  // intercept restart.
  if (options_.shape.intercept && is_worse_than_constant()) return reset_to_constant();
  if (std::exchange(proposal_is_partial_, false)) {
    if (line_search.after < line_search.before) accept(proposed);
    return;
  }
  ++steps_tried_;
  // Step fraction from which the full step is taken. For independent features, the fraction differs from 1 by sampling
  // error only. Sensitivity: docs/constants.md.
  constexpr double full_step_threshold = 0.75;
  // Step fraction below which the batch size doubles. Sensitivity: docs/constants.md.
  constexpr double batch_growth_threshold = 0.5;
  // Step fraction up to which the step is rejected. Sensitivity: docs/constants.md.
  constexpr double min_step_fraction = 0.02;
  const double squared_difference = line_search.before - 2 * line_search.cross + line_search.after;
  const double fraction = squared_difference > 0 && std::isfinite(squared_difference)
                              ? (line_search.before - line_search.cross) / squared_difference
                              : 0;
  if (fraction < batch_growth_threshold) batch_growth_ *= 2;
  if (fraction >= full_step_threshold) {
    accept(proposed);
  } else if (fraction > min_step_fraction) {
    // The truncation to rank k can increase the error. Therefore, the shortened step is evaluated on further rows.
    proposal_ = interpolate(one_scan_.model(), proposed, static_cast<Scalar>(fraction),
                            options_.shape.positive ? EigenvalueSelection::positive : EigenvalueSelection::largest);
    proposal_is_partial_ = true;
  }
}

template <typename Scalar>
void MomentLearner<Scalar>::accept(const Model<Scalar>& model) {
  one_scan_.set_model(model);
  comparison_ = {};
  ++steps_taken_;
}

/// Restarts from the mean of the targets with the current factors, and doubles the batch size.
template <typename Scalar>
void MomentLearner<Scalar>::reset_to_constant() {
  proposal_is_partial_ = false;
  batch_growth_ *= 2;
  Model<Scalar> start = one_scan_.model();
  start.intercept = static_cast<Scalar>(target_mean_);
  std::fill(start.weights.begin(), start.weights.end(), Scalar(0));
  std::fill(start.spectrum.begin(), start.spectrum.end(), Scalar(0));
  std::fill(start.squares.begin(), start.squares.end(), Scalar(0));
  one_scan_.set_model(std::move(start));
  comparison_ = {};
  steps_taken_ = 0;
}

template <typename Scalar>
bool MomentLearner<Scalar>::is_worse_than_constant() const {
  // Number of rows below which the sampling error of the comparison is too large for a decision. Sensitivity:
  // docs/constants.md.
  constexpr Index min_comparison_rows = 30;
  return steps_taken_ > 0 && comparison_.rows >= min_comparison_rows &&
         !(comparison_.squares < comparison_.squares_of_constant);
}

template <typename Scalar>
Model<Scalar> MomentLearner<Scalar>::model() const {
  if (!is_constant()) return one_scan_.model();
  const Model<Scalar>& shape = one_scan_.model();
  Model<Scalar> constant(shape.dim(), shape.rank(), shape.left_dim);
  constant.intercept = static_cast<Scalar>(target_mean_);
  constant.factors = shape.factors;
  constant.squares.resize(shape.squares.size());
  return constant;
}

template <typename Scalar>
void MomentLearner<Scalar>::LineSearch::archive(Archive& archive) {
  archive.number("trial_rows", rows);
  archive.number("trial_before", before);
  archive.number("trial_both", cross);
  archive.number("trial_after", after);
}

template <typename Scalar>
void MomentLearner<Scalar>::discard_overflowed_sums() {
  if (one_scan_.discard_overflowed_sums()) rows_in_batch_ = 0;
  if (!std::isfinite(comparison_.squares) || !std::isfinite(comparison_.squares_of_constant)) comparison_ = {};
  if (std::isfinite(line_search_.before) && std::isfinite(line_search_.cross) && std::isfinite(line_search_.after))
    return;
  line_search_ = {};
  proposal_.reset();
  proposal_is_partial_ = false;
}

template <typename Scalar>
void MomentLearner<Scalar>::archive(Archive& archive) {
  if (!archive.is_loading()) discard_overflowed_sums();
  archive.group("one_scan", [&] { one_scan_.archive(archive); });
  archive.number("batch_growth", batch_growth_);
  archive.number("rows_in_batch", rows_in_batch_);
  archive.number("steps_tried", steps_tried_);
  archive.number("steps_taken", steps_taken_);
  archive.number("target_weight", target_weight_);
  archive.number("target_mean", target_mean_);
  archive.number("record_rows", comparison_.rows);
  archive.number("record_squares", comparison_.squares);
  archive.number("record_squares_of_constant", comparison_.squares_of_constant);
  bool has_proposal = proposal_.has_value();
  archive.number("trying", has_proposal);
  if (!has_proposal) return;
  if (archive.is_loading()) proposal_ = one_scan_.model();
  archive.group("proposed", [&] { archive_model(archive, *proposal_); });
  archive.number("proposed_is_a_part", proposal_is_partial_);
  line_search_.archive(archive);
}

template <typename Scalar>
void MomentLearner<Scalar>::start_worker_sums() {
  rows_in_batch_ = 0;
  (void)one_scan_.take_batch_sums();
  line_search_ = {};
  comparison_ = {};
  worker_weight_ = worker_target_sum_ = 0;
}

template <typename Scalar>
void MomentLearner<Scalar>::accumulate(const Rows<Scalar>& rows) {
  std::vector<Scalar> residuals(static_cast<std::size_t>(rows.count()));
  if (proposal_)
    evaluate_proposal(rows, residuals);
  else
    one_scan_.observe(rows, residuals);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const auto [weight, target] = add_to_comparison(rows, residuals, i);
    worker_weight_ += weight;
    worker_target_sum_ += weight * target;
  }
}

template <typename Scalar>
void MomentLearner<Scalar>::archive_worker_sums(Archive& archive) {
  archive.number("weight", worker_weight_);
  archive.number("target", worker_target_sum_);
  archive.number("rows", comparison_.rows);
  archive.number("squares", comparison_.squares);
  archive.number("squares_of_constant", comparison_.squares_of_constant);
  if (proposal_) {
    line_search_.archive(archive);
  } else {
    auto sums = one_scan_.take_batch_sums();
    sums.archive(archive);
    one_scan_.restore_batch_sums(sums);
  }
  if (!archive.is_loading() || !(worker_weight_ > 0)) return;
  target_weight_ = worker_weight_;
  target_mean_ = worker_target_sum_ / worker_weight_;
  if (proposal_)
    finish_line_search();
  else
    propose();
}

template class MomentLearner<float>;
template class MomentLearner<double>;

}  // namespace dyad
