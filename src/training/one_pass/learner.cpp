#include <dyad/learner.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "training/one_pass/learner_implementation.h"

namespace dyad {
namespace {

/// Throws if a feature is not finite or exceeds max_abs_value, beyond which sums of powers overflow.
template <typename Scalar>
void require_finite_features(const Rows<Scalar>& rows) {
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index, Scalar x) {
      if (!(std::abs(x) <= max_abs_value))
        throw std::invalid_argument("rows: row " + std::to_string(i) +
                                    " has a feature that is not finite or exceeds max_abs_value (1e70)");
    });
}

template <typename Scalar>
void require_finite_targets(const Rows<Scalar>& rows) {
  const std::span<const Scalar> targets = rows.targets();
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (!(std::abs(targets[i]) <= max_abs_value))
      throw std::invalid_argument("rows: row " + std::to_string(i) +
                                  " has a target that is not finite or exceeds max_abs_value (1e70)");
}

}  // namespace

MomentOptions moment_options(const LearnerOptions& options) {
  MomentOptions moment;
  moment.shape = options.shape;
  moment.standardization = options.shape.is_measurement() ? Standardization::scale : Standardization::center;
  moment.threads = options.threads;
  moment.seed = options.seed;
  return moment;
}

StreamOptions stream_options(const LearnerOptions& options) {
  options.validate();
  StreamOptions stream;
  KalmanOptions& kalman = stream.kalman;
  kalman = kalman_options(moment_options(options));
  Support support;
  if (options.range) support = {options.range->first, options.range->second};
  kalman.likelihood = make_likelihood(options.task, support);
  kalman.half_life = options.half_life;
  stream.features_are_standardized = false;
  stream.learns_prior = options.shape.linear;
  if (options.shape.left_dim > 0) stream.groups.count = 2;
  stream.buffered_start.memory = options.memory;
  stream.buffered_start.searches_starts = options.shape.is_measurement();
  return stream;
}

void LearnerOptions::validate() const {
  shape.validate();
  ThreadPool::require_valid_count(threads);
  if (shape.linear != shape.intercept)
    throw std::invalid_argument(
        "shape.linear and shape.intercept must be equal: both true, or both false for measurements");
  if (shape.is_measurement() && (shape.diagonal != Diagonal::tied || !likelihood_of(task).has_identity_link() || range))
    throw std::invalid_argument(
        "measurements (shape.linear is false) require Task::regression, Diagonal::tied and no range");
  if (range && !(range->first < range->second))
    throw std::invalid_argument("range must have a lower end below its upper end");
  if (!(half_life >= 0) || !(memory >= 0)) throw std::invalid_argument("half_life and memory must be at least 0");
}

template <typename Scalar>
Learner<Scalar>::Learner(const LearnerOptions& options) : implementation_(std::make_unique<Implementation>(options)) {}
template <typename Scalar>
Learner<Scalar>::~Learner() = default;
template <typename Scalar>
Learner<Scalar>::Learner(Learner&&) noexcept = default;
template <typename Scalar>
Learner<Scalar>& Learner<Scalar>::operator=(Learner&&) noexcept = default;

template <typename Scalar>
void Learner<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  if (rows.dim() != implementation_->options.shape.dim)
    throw std::invalid_argument("rows have " + std::to_string(rows.dim()) + " features, but the learner has " +
                                std::to_string(implementation_->options.shape.dim) +
                                " (call grow() before learning rows with more features)");
  if (!rows.has_targets() && rows.count() > 0) throw std::invalid_argument("rows must have targets");
  if (!predictions.empty() && static_cast<Index>(predictions.size()) != rows.count())
    throw std::invalid_argument("predictions must be empty or have one element per row");
  require_finite_features(rows);
  require_finite_targets(rows);
  Index done = 0;  // number of rows that are buffered for the start, or learned by it
  for (; !implementation_->learner && done < rows.count(); ++done) {
    if (!predictions.empty())
      predictions[static_cast<std::size_t>(done)] = implementation_->as_prediction(implementation_->constant());
    const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(done)]);
    implementation_->squares += y * y;
    implementation_->sum += implementation_->likelihood().observed(y);
    implementation_->first_rows.append(rows.slice(done, 1));
    ++implementation_->rows;
    if (implementation_->first_rows.count() >= Implementation::min_start_rows) implementation_->start();
  }
  const Rows<Scalar> rest = rows.slice(done, rows.count() - done);
  if (rest.count() == 0) return;
  std::vector<Scalar> values(static_cast<std::size_t>(rest.count()));
  implementation_->learner->learn(rest, values);
  if (implementation_->likelihood().is_classification()) implementation_->apply_evidence(rest, values);
  implementation_->rows += rest.count();
  if (predictions.empty()) return;
  for (std::size_t i = 0; i < values.size(); ++i)
    predictions[static_cast<std::size_t>(done) + i] = implementation_->as_prediction(static_cast<double>(values[i]));
}

template <typename Scalar>
void Learner<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> deviations,
                              std::span<const Index> unseen) const {
  if (rows.dim() != implementation_->options.shape.dim || static_cast<Index>(predictions.size()) != rows.count() ||
      (!deviations.empty() && deviations.size() != predictions.size()) ||
      (!unseen.empty() && unseen.size() != predictions.size()))
    throw std::invalid_argument(
        "rows must have dim() features, predictions one element per row, and deviations and unseen must be empty or "
        "have one element per row");
  if (!std::all_of(unseen.begin(), unseen.end(), [](Index count) { return count >= 0; }) ||
      (!unseen.empty() && implementation_->options.shape.left_dim > 0))
    throw std::invalid_argument("unseen must be at least 0, and empty for bilinear models");
  require_finite_features(rows);
  std::vector<Scalar> variances(predictions.size());
  if (implementation_->learner) {
    implementation_->predict(rows, predictions, variances, unseen, !deviations.empty());
  }
  if (!implementation_->learner || implementation_->is_constant())
    std::fill(predictions.begin(), predictions.end(), static_cast<Scalar>(implementation_->constant()));
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    predictions[i] = implementation_->as_prediction(static_cast<double>(predictions[i]));
    if (deviations.empty()) continue;
    const Likelihood& likelihood = implementation_->likelihood();
    const double noise_variance = likelihood.has_noise_variance() ? noise() * noise() : 0;
    deviations[i] = static_cast<Scalar>(std::sqrt(static_cast<double>(variances[i]) + noise_variance) *
                                        likelihood.mean_derivative(static_cast<double>(predictions[i])));
  }
}

template <typename Scalar>
void Learner<Scalar>::grow(Index dim, Index left_dim) {
  LearnerOptions& options = implementation_->options;
  const Index right = dim - left_dim;
  if (dim < options.shape.dim || left_dim < options.shape.left_dim ||
      right < options.shape.dim - options.shape.left_dim || (left_dim > 0) != (options.shape.left_dim > 0))
    throw std::invalid_argument(
        "dim and left_dim must not remove features of either side, and left_dim must be 0 unless the model is "
        "bilinear");
  if (!implementation_->learner && implementation_->first_rows.count() > 0) implementation_->start();
  options.shape.dim = implementation_->stream.kalman.shape.dim = dim;
  options.shape.left_dim = implementation_->stream.kalman.shape.left_dim = left_dim;
  if (implementation_->learner) implementation_->learner->grow(dim, left_dim);
}

template <typename Scalar>
Index Learner<Scalar>::dim() const {
  return implementation_->options.shape.dim;
}

template <typename Scalar>
Index Learner<Scalar>::rows() const {
  return implementation_->rows;
}

template <typename Scalar>
double Learner<Scalar>::noise() const {
  if (implementation_->learner) return std::sqrt(implementation_->learner->noise_variance());
  if (implementation_->rows < 2) return std::numeric_limits<double>::infinity();
  const double mean = implementation_->sum / static_cast<double>(implementation_->rows);
  return std::sqrt(std::max(0.0, implementation_->squares / static_cast<double>(implementation_->rows) - mean * mean));
}

template <typename Scalar>
Model<Scalar> Learner<Scalar>::model() const {
  if (implementation_->learner && !implementation_->is_constant()) return implementation_->learner->model();
  Model<Scalar> constant(implementation_->options.shape.dim, implementation_->options.shape.rank,
                         implementation_->options.shape.left_dim);
  constant.intercept = static_cast<Scalar>(implementation_->constant());
  return constant;
}

template <typename Scalar>
std::string Learner<Scalar>::origin() const {
  if (!implementation_->learner) return "the mean of the first rows";
  if (implementation_->is_constant())
    return "the constant probability: rows predicted before they were learned give too little evidence for the "
           "features";
  return implementation_->learner->origin();
}

template class Learner<float>;
template class Learner<double>;

}  // namespace dyad
