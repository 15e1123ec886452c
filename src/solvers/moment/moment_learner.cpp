#include "solvers/moment/moment_learner.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/low_rank.h"
#include "solvers/moment/step.h"

namespace dyad {
namespace {

/// (1 - share) before + share after, cut back to rank k.
template <typename Scalar>
Model<Scalar> on_the_way(const Model<Scalar>& before, const Model<Scalar>& after, Scalar share, Keep keep) {
  const Sides sides(before);
  const Index k = before.rank();
  Model<Scalar> model = before;
  const auto mix = [&](Scalar a, Scalar b) { return (1 - share) * a + share * b; };
  const auto mix_all = [&](std::vector<Scalar>& numbers, const std::vector<Scalar>& others) {
    std::transform(numbers.begin(), numbers.end(), others.begin(), numbers.begin(), mix);
  };
  model.intercept = mix(before.intercept, after.intercept);
  mix_all(model.weights, after.weights);
  mix_all(model.squares, after.squares);
  Small<Scalar> core = Small<Scalar>::Zero(2 * k, 2 * k);
  core.diagonal() << (1 - share) * as_vector(before.spectrum), share * as_vector(after.spectrum);
  const auto U = as_tall(before.factors, before.dim(), k);
  const auto V = as_tall(after.factors, after.dim(), k);
  set_interactions(model, best_rank_k<Scalar>(sides, side_by_side<Scalar>(U, V), core, k, keep));
  if (!model.squares.empty()) {
    // The coefficients of x_j^2, M_jj + squares_j, are what was mixed; cutting M back must not change them.
    const Vector<Scalar> mixed =
        (1 - share) * diagonal_of_interactions(before) + share * diagonal_of_interactions(after);
    as_vector(model.squares) += mixed - diagonal_of_interactions(model);
  }
  return model;
}

}  // namespace

Index usual_batch(Index rank, Index dim) {
  constexpr Index first = 4096;
  return std::min(6 * rank * dim, first);
}

template <typename Scalar>
MomentLearner<Scalar>::MomentLearner(const MomentOptions& options, std::optional<Index> batch, ThreadPool& pool,
                                     bool features_are_independent)
    : options_(options),
      batch_(batch),
      features_are_independent_(features_are_independent),
      one_scan_(options, random_start<Scalar>(options, options.shape.rank), pool) {}

template <typename Scalar>
Index MomentLearner<Scalar>::batch_rows() const {
  const Index usual = usual_batch(one_scan_.model().rank(), one_scan_.model().dim());
  return static_cast<Index>(static_cast<double>(batch_.value_or(usual)) * batch_growth_);
}

template <typename Scalar>
Index MomentLearner<Scalar>::trial_rows() const {
  constexpr Index fewest = 48;
  return std::max(fewest, batch_rows() / 8);
}

template <typename Scalar>
Index MomentLearner<Scalar>::rows_until_step() const {
  return proposed_ ? 0 : std::max<Index>(0, batch_rows() - rows_in_batch_);
}

template <typename Scalar>
void MomentLearner<Scalar>::grow(Index dim, Index left_dim) {
  const Model<Scalar>& model = one_scan_.model();
  const Growth growth{.left_before = model.is_bilinear() ? model.left_dim : model.dim(),
                      .right_before = model.is_bilinear() ? model.dim() - model.left_dim : 0,
                      .left_after = model.is_bilinear() ? left_dim : dim,
                      .right_after = model.is_bilinear() ? dim - left_dim : 0};
  if (growth.is_none()) return;
  one_scan_.grow(growth);
  if (proposed_) grow_model(*proposed_, growth);
}

template <typename Scalar>
void MomentLearner<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> residuals) {
  for (Index first = 0; first < rows.count();) {
    const Index count = std::min(rows_until_decision(), rows.count() - first);
    const Rows<Scalar> part = rows.slice(first, count);
    const auto own = residuals.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    if (proposed_)
      try_out(part, own);
    else
      one_scan_.observe(part, own);
    keep_record(part, own);
    if (proposed_) {
      if (trial_.rows >= trial_rows()) decide();
    } else {
      rows_in_batch_ += count;
      if (rows_in_batch_ >= batch_rows() && one_scan_.weight_of_batch() > 0) propose();
    }
    first += count;
  }
}

template <typename Scalar>
void MomentLearner<Scalar>::try_out(const Rows<Scalar>& rows, std::span<Scalar> residuals) {
  std::vector<Scalar> after(residuals.size());
  one_scan_.model().predict(rows, residuals);
  proposed_->predict(rows, after);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] = rows.targets()[i] - residuals[i];
    const auto r = static_cast<double>(residuals[i]);
    const auto next = static_cast<double>(rows.targets()[i] - after[i]);
    const auto weight = static_cast<double>(rows.weight(static_cast<Index>(i)));
    trial_.before += weight * r * r;
    trial_.both += weight * r * next;
    trial_.after += weight * next * next;
  }
  trial_.rows += rows.count();
}

template <typename Scalar>
void MomentLearner<Scalar>::keep_record(const Rows<Scalar>& rows, std::span<const Scalar> residuals) {
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const auto [weight, target] = add_to_record(rows, residuals, i);
    target_weight_ += weight;
    if (target_weight_ > 0) target_mean_ += weight * (target - target_mean_) / target_weight_;
  }
}

/// Returns the row's weight and target.
template <typename Scalar>
std::pair<double, double> MomentLearner<Scalar>::add_to_record(const Rows<Scalar>& rows,
                                                               std::span<const Scalar> residuals, std::size_t i) {
  const auto weight = static_cast<double>(rows.weight(static_cast<Index>(i)));
  const auto target = static_cast<double>(rows.targets()[i]);
  const auto residual = static_cast<double>(residuals[i]);
  record_.squares += weight * residual * residual;
  record_.squares_of_constant += weight * (target - target_mean_) * (target - target_mean_);
  ++record_.rows;
  return {weight, target};
}

template <typename Scalar>
void MomentLearner<Scalar>::propose() {
  rows_in_batch_ = 0;
  Model<Scalar> next = one_scan_.model();
  if (!one_scan_.end_batch(next).accepted) {
    ++steps_tried_;
    return;
  }
  if (features_are_independent_) {
    ++steps_tried_;
    return take(next);
  }
  proposed_ = std::move(next);
  trial_ = {};
}

template <typename Scalar>
void MomentLearner<Scalar>::decide() {
  const Trial trial = std::exchange(trial_, {});
  const Model<Scalar> proposed = *std::exchange(proposed_, std::nullopt);
  // Without an intercept, the way to the truth may begin below the best constant.
  if (options_.shape.intercept && is_worse_than_constant()) return start_again();
  if (std::exchange(proposed_is_a_part_, false)) {
    if (trial.after < trial.before) take(proposed);
    return;
  }
  ++steps_tried_;
  constexpr double all_the_way = 0.75;
  constexpr double half_the_way = 0.5;
  constexpr double nowhere = 0.02;
  const double length = trial.before - 2 * trial.both + trial.after;
  const double share = length > 0 && std::isfinite(length) ? (trial.before - trial.both) / length : 0;
  if (share < half_the_way) batch_growth_ *= 2;
  if (share >= all_the_way) {
    take(proposed);
  } else if (share > nowhere) {
    // Cutting the mixture back to rank k may cost what was gained, so it is tried out in turn.
    proposed_ = on_the_way(one_scan_.model(), proposed, static_cast<Scalar>(share),
                           options_.shape.positive ? Keep::positive : Keep::largest);
    proposed_is_a_part_ = true;
  }
}

template <typename Scalar>
void MomentLearner<Scalar>::take(const Model<Scalar>& model) {
  one_scan_.set_model(model);
  record_ = {};
  ++steps_taken_;
}

template <typename Scalar>
void MomentLearner<Scalar>::start_again() {
  proposed_is_a_part_ = false;
  batch_growth_ *= 2;
  Model<Scalar> start = one_scan_.model();
  start.intercept = static_cast<Scalar>(target_mean_);
  std::fill(start.weights.begin(), start.weights.end(), Scalar(0));
  std::fill(start.spectrum.begin(), start.spectrum.end(), Scalar(0));
  std::fill(start.squares.begin(), start.squares.end(), Scalar(0));
  one_scan_.set_model(std::move(start));
  record_ = {};
  steps_taken_ = 0;
}

template <typename Scalar>
bool MomentLearner<Scalar>::is_worse_than_constant() const {
  constexpr Index fewest = 30;
  return steps_taken_ > 0 && record_.rows >= fewest && !(record_.squares < record_.squares_of_constant);
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
void MomentLearner<Scalar>::Trial::archive(Archive& archive) {
  archive.number("trial_rows", rows);
  archive.number("trial_before", before);
  archive.number("trial_both", both);
  archive.number("trial_after", after);
}

template <typename Scalar>
void MomentLearner<Scalar>::drop_overflow() {
  if (one_scan_.drop_overflow()) rows_in_batch_ = 0;
  if (!std::isfinite(record_.squares) || !std::isfinite(record_.squares_of_constant)) record_ = {};
  if (std::isfinite(trial_.before) && std::isfinite(trial_.both) && std::isfinite(trial_.after)) return;
  trial_ = {};
  proposed_.reset();
  proposed_is_a_part_ = false;
}

template <typename Scalar>
void MomentLearner<Scalar>::archive(Archive& archive) {
  if (!archive.is_loading()) drop_overflow();
  archive.group("one_scan", [&] { one_scan_.archive(archive); });
  archive.number("batch_growth", batch_growth_);
  archive.number("rows_in_batch", rows_in_batch_);
  archive.number("steps_tried", steps_tried_);
  archive.number("steps_taken", steps_taken_);
  archive.number("target_weight", target_weight_);
  archive.number("target_mean", target_mean_);
  archive.number("record_rows", record_.rows);
  archive.number("record_squares", record_.squares);
  archive.number("record_squares_of_constant", record_.squares_of_constant);
  bool trying = proposed_.has_value();
  archive.number("trying", trying);
  if (!trying) return;
  if (archive.is_loading()) proposed_ = one_scan_.model();
  archive.group("proposed", [&] { archive_model(archive, *proposed_); });
  archive.number("proposed_is_a_part", proposed_is_a_part_);
  trial_.archive(archive);
}

template <typename Scalar>
void MomentLearner<Scalar>::start_part() {
  rows_in_batch_ = 0;
  (void)one_scan_.take_batch();
  trial_ = {};
  record_ = {};
  part_weight_ = part_target_ = 0;
}

template <typename Scalar>
void MomentLearner<Scalar>::gather(const Rows<Scalar>& rows) {
  std::vector<Scalar> residuals(static_cast<std::size_t>(rows.count()));
  if (proposed_)
    try_out(rows, residuals);
  else
    one_scan_.observe(rows, residuals);
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const auto [weight, target] = add_to_record(rows, residuals, i);
    part_weight_ += weight;
    part_target_ += weight * target;
  }
}

template <typename Scalar>
void MomentLearner<Scalar>::archive_part(Archive& archive) {
  archive.number("weight", part_weight_);
  archive.number("target", part_target_);
  archive.number("rows", record_.rows);
  archive.number("squares", record_.squares);
  archive.number("squares_of_constant", record_.squares_of_constant);
  if (proposed_) {
    trial_.archive(archive);
  } else {
    auto sums = one_scan_.take_batch();
    sums.archive(archive);
    one_scan_.put_batch(sums);
  }
  if (!archive.is_loading() || !(part_weight_ > 0)) return;
  target_weight_ = part_weight_;
  target_mean_ = part_target_ / part_weight_;
  if (proposed_)
    decide();
  else
    propose();
}

template class MomentLearner<float>;
template class MomentLearner<double>;

}  // namespace dyad
