#include "training/one_pass/row_sample.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dyad {
namespace {

/// Minimum number of rows or pairs for a reliable standard error. Sensitivity: docs/constants.md.
constexpr std::size_t min_sampled_rows = 100;
constexpr double required_standard_errors = 3;

}  // namespace

/// Predictions of regression are limited to the range of the targets.
template <typename Scalar>
double RowSample<Scalar>::loss(const Likelihood& likelihood, double target, double predictor) const {
  const double bounded = likelihood.has_identity_link() ? std::clamp(predictor, min_target_, max_target_) : predictor;
  return likelihood.score(likelihood.observed(target), likelihood.mean(bounded));
}

template <typename Scalar>
void RowSample<Scalar>::add(const Rows<Scalar>& rows, std::span<const double> predictors,
                            const Likelihood& likelihood) {
  is_sparse_ = is_sparse_ || rows.is_sparse();
  if (entries_.empty() && rows.count() > 0) {
    std::size_t entries = 0;
    rows.for_each_entry(0, [&](Index, Scalar) { ++entries; });
    constexpr std::size_t min_rows = 64;
    capacity_ = std::clamp(max_entries / std::max<std::size_t>(1, entries), min_rows, max_rows);
  }
  for (Index i = 0; i < rows.count(); ++i) {
    if (!(rows.weight(i) > 0)) continue;
    const Scalar target = rows.targets()[static_cast<std::size_t>(i)];
    const auto y = static_cast<double>(target);
    min_target_ = rows_ > 0 ? std::min(min_target_, y) : y;
    max_target_ = rows_ > 0 ? std::max(max_target_, y) : y;
    rows_ += 1;
    if (rows_ < next_row_) continue;
    const bool is_full = entries_.size() == capacity_;
    if (!is_full) entries_.emplace_back();
    Entry& entry = is_full ? entries_[static_cast<std::size_t>(random_.uniform() * static_cast<double>(capacity_))]
                           : entries_.back();
    assign(entry, rows, i);
    entry.loss = loss(likelihood, y, predictors[static_cast<std::size_t>(i)]);
    if (i > 0) assign(previous_, rows, i - 1);
    entry.similarity = similarity(previous_, entry);
    if (entries_.size() == capacity_)
      draw_next_row();
    else
      next_row_ += 1;
  }
  if (rows.count() > 0) assign(previous_, rows, rows.count() - 1);
}

template <typename Scalar>
void RowSample<Scalar>::draw_next_row() {
  const auto log_uniform = [&] { return std::log(1 - random_.uniform()); };  // uniform() < 1
  skip_weight_ *= std::exp(log_uniform() / static_cast<double>(capacity_));
  next_row_ = rows_ + 1 + std::floor(log_uniform() / std::log1p(-skip_weight_));
}

template <typename Scalar>
void RowSample<Scalar>::assign(Entry& entry, const Rows<Scalar>& rows, Index i) const {
  entry.columns.clear();
  entry.values.clear();
  rows.for_each_entry(i, [&](Index j, Scalar x) {
    entry.columns.push_back(static_cast<std::int32_t>(j));
    entry.values.push_back(x);
  });
  entry.target = rows.targets()[static_cast<std::size_t>(i)];
  entry.weight = rows.weight(i);
}

template <typename Scalar>
double RowSample<Scalar>::similarity(const Entry& x, const Entry& z) {
  double product = 0;
  double x_square = 0;
  double z_square = 0;
  for (const Scalar value : x.values) x_square += static_cast<double>(value) * static_cast<double>(value);
  for (const Scalar value : z.values) z_square += static_cast<double>(value) * static_cast<double>(value);
  for (std::size_t a = 0, b = 0; a < x.values.size() && b < z.values.size();) {
    if (x.columns[a] != z.columns[b]) {
      ++(x.columns[a] < z.columns[b] ? a : b);
      continue;
    }
    product += static_cast<double>(x.values[a++]) * static_cast<double>(z.values[b++]);
  }
  const double scale = std::sqrt(x_square * z_square);
  return scale > 0 ? product / scale : 0;
}

template <typename Scalar>
bool RowSample<Scalar>::has_similar_neighbors() const {
  const std::size_t half = entries_.size() / 2;
  if (half < min_sampled_rows) return false;
  // Means of the similarities of neighbors and of random pairs, and squares of their standard errors.
  const auto statistics = [](std::size_t count, auto&& value) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += value(i);
      squares += value(i) * value(i);
    }
    const auto n = static_cast<double>(count);
    return std::pair(sum / n, std::max(0.0, squares / n - sum * sum / (n * n)) / n);
  };
  const auto [neighbors, neighbor_variance] =
      statistics(entries_.size(), [&](std::size_t i) { return entries_[i].similarity; });
  const auto [random_pairs, random_variance] =
      statistics(half, [&](std::size_t i) { return similarity(entries_[i], entries_[i + half]); });
  return neighbors - random_pairs > required_standard_errors * std::sqrt(neighbor_variance + random_variance);
}

template <typename Scalar>
typename RowSample<Scalar>::Comparison RowSample<Scalar>::compare(const KalmanFilter<Scalar>& filter) const {
  const Likelihood& likelihood = *filter.options().likelihood;
  const Index dim = filter.options().shape.dim;
  Comparison result;
  double square = 0;
  double total = 0;
  // Number of rows that are predicted. Sensitivity: docs/constants.md.
  constexpr std::size_t max_compared_rows = 2048;
  const std::size_t stride = std::max<std::size_t>(1, entries_.size() / max_compared_rows);
  std::size_t count = 0;
  for (std::size_t i = 0; i < entries_.size(); i += stride) {
    const Entry& entry = entries_[i];
    ++count;
    Scalar mean = 0;
    Scalar variance = 0;
    const std::vector<Index> offsets{0, static_cast<Index>(entry.values.size())};
    filter.predict(Rows<Scalar>::template sparse_unchecked<Index>(offsets, entry.columns, entry.values, dim, {}),
                   {&mean, 1}, {&variance, 1});
    double predictor = static_cast<double>(mean);
    if (filter.learns_prior()) predictor = likelihood.posterior_predictor(predictor, static_cast<double>(variance));
    const double value = loss(likelihood, static_cast<double>(entry.target), predictor);
    const auto weight = static_cast<double>(entry.weight);
    total += weight;
    result.loss += weight * value;
    result.difference += weight * (value - entry.loss);
    square += weight * (value - entry.loss) * (value - entry.loss);
  }
  if (!(total > 0)) return result;
  result.loss /= total;
  result.difference /= total;
  result.standard_error =
      std::sqrt(std::max(0.0, square / total - result.difference * result.difference) / static_cast<double>(count));
  return result;
}

template <typename Scalar>
bool RowSample<Scalar>::order_hurts(const KalmanFilter<Scalar>& filter) const {
  if (entries_.size() < min_sampled_rows) return false;
  const Comparison comparison = compare(filter);
  return comparison.difference > required_standard_errors * comparison.standard_error;
}

template <typename Scalar>
double RowSample<Scalar>::constant_loss(const Likelihood& likelihood) const {
  double weight = 0;
  double sum = 0;
  double squares = 0;
  for (const Entry& entry : entries_) {
    const auto w = static_cast<double>(entry.weight);
    const double observed = likelihood.observed(static_cast<double>(entry.target));
    weight += w;
    sum += w * observed;
    squares += w * observed * observed;
  }
  if (!(weight > 0)) return 0;
  return likelihood.constant_score(sum / weight, std::max(0.0, squares / weight - std::pow(sum / weight, 2)));
}

template <typename Scalar>
Rows<Scalar> RowSample<Scalar>::view(Index dim) {
  offsets_.assign(1, 0);
  columns_.clear();
  values_.clear();
  targets_.clear();
  weights_.clear();
  for (const Entry& entry : entries_) {
    columns_.insert(columns_.end(), entry.columns.begin(), entry.columns.end());
    values_.insert(values_.end(), entry.values.begin(), entry.values.end());
    if (!is_sparse_) values_.resize(values_.size() + static_cast<std::size_t>(dim) - entry.values.size());
    offsets_.push_back(static_cast<Index>(values_.size()));
    targets_.push_back(entry.target);
    weights_.push_back(entry.weight);
  }
  const Rows<Scalar> rows =
      is_sparse_ ? Rows<Scalar>::template sparse_unchecked<Index>(offsets_, columns_, values_, dim, targets_)
                 : Rows<Scalar>::dense(values_, dim, targets_);
  return rows.weighted(weights_);
}

template class RowSample<float>;
template class RowSample<double>;

}  // namespace dyad
