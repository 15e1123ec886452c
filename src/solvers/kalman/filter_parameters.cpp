#include "solvers/kalman/filter_parameters.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/random.h"

namespace dyad {
namespace {

/// Fields of a record after the factors: weight, its variance, square, its variance, scale, prior group, logarithm of
/// the noise multiplier, its variance.
constexpr Index linear_field_count = 8;
/// Number of these fields that are archived with each feature: all before the prior group.
constexpr Index archived_field_count = 5;

/// The smallest multiple of `unit` that is at least `number`.
Index round_up(Index number, Index unit) { return (number + unit - 1) / unit * unit; }

}  // namespace

double KalmanOptions::unknowns_per_row() const {
  // Lower bound of the averaging windows of the noise estimate, for rows with few entries. Sensitivity:
  // docs/constants.md.
  constexpr double min_unknowns_per_row = 100;
  return std::max(min_unknowns_per_row, entries_per_row * static_cast<double>(shape.rank + 1));
}

void Prior::archive(Archive& archive) {
  archive.number("intercept", intercept);
  archive.number("weights", weights);
  archive.number("squares", squares);
  archive.number("factors", factors);
}

template <typename Scalar>
FilterParameters<Scalar>::FilterParameters(const KalmanOptions& options, const Prior& prior)
    : options_(options),
      prior_(prior),
      first_right_feature_(first_right_feature(options)),
      width_(round_up(options.shape.rank, SimdVector<Scalar>::count)),
      stride_(round_up(2 * width_ + linear_field_count, CacheAlignedAllocator<Scalar>::numbers_per_line / 2)),
      records_(static_cast<std::size_t>(options.shape.dim * stride_)),
      signs_(static_cast<std::size_t>(width_)),
      intercept_(options.shape.intercept ? prior.intercept_mean : 0),
      intercept_variance_(options.shape.intercept ? prior.intercept : 0) {
  if (options.half_life > 0) last_occurrence_.resize(static_cast<std::size_t>(options.shape.dim));
  const bool all_signs_positive = options.shape.left_dim > 0 || options.shape.positive;
  const Vector<Scalar> signs =
      all_signs_positive ? Vector<Scalar>::Ones(options.shape.rank) : alternating_signs<Scalar>(options.shape.rank);
  std::copy(signs.begin(), signs.end(), signs_.begin());
}

template <typename Scalar>
FilterParameters<Scalar>::FilterParameters(const KalmanOptions& options, const Prior& prior, const FilterGroups& groups)
    : FilterParameters(options, prior) {
  groups_ = groups;
  learned_prior_.emplace(groups.count, options.shape.rank, prior.factors, prior.weights, prior.squares);
  group_records_.assign(static_cast<std::size_t>(2 * groups.count * stride_), Scalar(0));
  set_prior_records();
  start_group_means();
}

template <typename Scalar>
void FilterParameters<Scalar>::set_scales(std::span<const double> scales) {
  for (Index j = 0; j < options_.shape.dim; ++j)
    if (scales[static_cast<std::size_t>(j)] > 0) {
      record(j)[scale_offset()] = static_cast<Scalar>(scales[static_cast<std::size_t>(j)]);
      added_.push_back(static_cast<std::int32_t>(j));
    }
}

template <typename Scalar>
void FilterParameters<Scalar>::set_means(const SignedFactors<Scalar>& means) {
  intercept_ = static_cast<double>(means.intercept);
  std::copy(means.signs.begin(), means.signs.end(), signs_.begin());
  for (Index j = 0; j < options_.shape.dim; ++j) {
    Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) feature[c] = means.A(j, c);
    feature[weight_offset()] = means.weights[j];
    if (options_.shape.diagonal != Diagonal::free) continue;
    feature[square_offset()] = means.squares[j];
    intercept_ += static_cast<double>(means.squares[j]) * options_.square_center;
  }
}

template <typename Scalar>
void FilterParameters<Scalar>::set_variances(const SignedFactors<Scalar>& variances) {
  intercept_variance_ = static_cast<double>(variances.intercept);
  for (Index j = 0; j < options_.shape.dim; ++j) {
    Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) feature[width_ + c] = variances.A(j, c);
    feature[weight_offset() + 1] = variances.weights[j];
    if (options_.shape.diagonal == Diagonal::free) feature[square_offset() + 1] = variances.squares[j];
  }
}

template <typename Scalar>
void FilterParameters<Scalar>::add_feature(Index j, double scale) {
  record(j)[scale_offset()] = static_cast<Scalar>(scale);
  added_.push_back(static_cast<std::int32_t>(j));
  if (learned_prior_) return set_to_prior(j);
  for (Index c = 0; c < options_.shape.rank; ++c) draw_random_factor(j, c);
  set_variances(j, prior_);
}

template <typename Scalar>
void FilterParameters<Scalar>::set_variances(Index j, const Prior& prior) {
  Scalar* feature = record(j);
  const auto scale = static_cast<double>(feature[scale_offset()]);
  if (!(scale > 0)) return;
  const double inverse_square = 1 / (scale * scale);
  if (learned_prior_) return set_prior_variances(j);
  std::fill(feature + width_, feature + width_ + options_.shape.rank,
            static_cast<Scalar>(prior.factors * inverse_square));
  if (options_.shape.linear) feature[weight_offset() + 1] = static_cast<Scalar>(prior.weights * inverse_square);
  if (options_.shape.diagonal == Diagonal::free)
    feature[square_offset() + 1] = static_cast<Scalar>(prior.squares * inverse_square * inverse_square);
}

/// Sets A_jc to a normal random number with a standard deviation of half that of the prior. The number depends on the
/// seed, the feature and the factor only, not on the row in which the feature first occurs.
template <typename Scalar>
void FilterParameters<Scalar>::draw_random_factor(Index j, Index factor) {
  if (learned_prior_) {
    const double tau = learned_prior_->variances(group_of(j))[static_cast<std::size_t>(factor)];
    const auto scale = static_cast<double>(record(j)[scale_offset()]);
    record(j)[factor] = scale > 0 ? static_cast<Scalar>(prior_mean(j, factor, tau) / scale) : Scalar(0);
    return;
  }
  // Standard deviation of the initial factors divided by that of the prior. Sensitivity: docs/constants.md.
  constexpr double relative_deviation = 0.5;
  const bool is_right = side_of(j) == 1;
  const Index index_in_side = is_right ? j - options_.shape.left_dim : j;
  const Index stream = (2 * index_in_side + (is_right ? 1 : 0)) * options_.shape.rank + factor;
  Random random(options_.seed + static_cast<std::uint64_t>(sign_flips_),
                start_stream - 2 - static_cast<std::uint64_t>(stream));
  const auto scale = static_cast<double>(record(j)[scale_offset()]);
  record(j)[factor] =
      scale > 0 ? static_cast<Scalar>(relative_deviation * std::sqrt(prior_.factors) / scale * random.normal())
                : Scalar(0);
}

template <typename Scalar>
void FilterParameters<Scalar>::grow(Index dim, Index left_dim) {
  const Index left_before = options_.shape.left_dim > 0 ? options_.shape.left_dim : options_.shape.dim;
  const Index left_after = options_.shape.left_dim > 0 ? left_dim : dim;
  const Index right_before = options_.shape.dim - left_before;
  const Index right_after = dim - left_after;
  const auto insert = [&](auto& numbers, Index per_feature, auto value) {
    numbers.insert(numbers.end(), static_cast<std::size_t>((right_after - right_before) * per_feature), value);
    numbers.insert(numbers.begin() + left_before * per_feature,
                   static_cast<std::size_t>((left_after - left_before) * per_feature), value);
  };
  insert(records_, stride_, Scalar(0));
  if (options_.half_life > 0) insert(last_occurrence_, 1, rows_);
  for (std::int32_t& j : added_)
    if (j >= left_before) j += static_cast<std::int32_t>(left_after - left_before);
  options_.shape.dim = dim;
  options_.shape.left_dim = left_dim;
  first_right_feature_ = first_right_feature(options_);
}

template <typename Scalar>
SignedFactors<Scalar> FilterParameters<Scalar>::parameters() const {
  SignedFactors<Scalar> result;
  result.left_dim = options_.shape.left_dim;
  result.diagonal = options_.shape.diagonal;
  result.weights.resize(options_.shape.dim);
  result.A.resize(options_.shape.dim, options_.shape.rank);
  result.signs = as_vector(signs_).head(options_.shape.rank);
  if (options_.shape.diagonal == Diagonal::free) result.squares.resize(options_.shape.dim);
  double intercept = intercept_;
  for (Index j = 0; j < options_.shape.dim; ++j) {
    const Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) result.A(j, c) = feature[c];
    result.weights[j] = feature[weight_offset()];
    if (options_.shape.diagonal != Diagonal::free) continue;
    result.squares[j] = feature[square_offset()];
    intercept -= static_cast<double>(feature[square_offset()]) * options_.square_center;
  }
  result.intercept = static_cast<Scalar>(intercept);
  if (learned_prior_) add_group_means(result);
  return result;
}

template <typename Scalar>
Posterior<Scalar> FilterParameters<Scalar>::posterior() const {
  Posterior<Scalar> result{parameters(), parameters()};
  SignedFactors<Scalar>& variances = result.variances;
  variances.intercept = static_cast<Scalar>(intercept_variance_);
  for (Index j = 0; j < options_.shape.dim; ++j) {
    const Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) variances.A(j, c) = feature[width_ + c];
    variances.weights[j] = feature[weight_offset() + 1];
    if (options_.shape.diagonal == Diagonal::free) variances.squares[j] = feature[square_offset() + 1];
  }
  return result;
}

void NaturalParameters::add(double scale, const NaturalParameters& other) {
  for (std::size_t i = 0; i < precisions.size(); ++i) {
    precisions[i] += scale * other.precisions[i];
    moments[i] += scale * other.moments[i];
  }
}

void NaturalParameters::archive(Archive& archive, Index size) {
  archive.vector("precisions", precisions, size);
  archive.vector("moments", moments, size);
}

/// Calls visit(mean, variance) for the intercept, for the group means of a hierarchical prior (factors, weight), and
/// for all parameters of each feature, whether it was added or not: factors, weight, square (free diagonal).
template <typename Scalar>
template <typename Self, typename Visit>
void FilterParameters<Scalar>::for_each_parameter(Self& self, Visit&& visit) {
  visit(self.intercept_, self.intercept_variance_);
  const Index means = self.learned_prior_ ? self.groups_.count : 0;
  for (Index group = 0; group < means; ++group) {
    auto* mean = self.mean_record(group);
    for (Index c = 0; c < self.options_.shape.rank; ++c) visit(mean[c], mean[self.width_ + c]);
    visit(mean[self.weight_offset()], mean[self.weight_offset() + 1]);
  }
  for (Index j = 0; j < self.options_.shape.dim; ++j) {
    auto* feature = self.record(j);
    for (Index c = 0; c < self.options_.shape.rank; ++c) visit(feature[c], feature[self.width_ + c]);
    visit(feature[self.weight_offset()], feature[self.weight_offset() + 1]);
    if (self.options_.shape.diagonal == Diagonal::free)
      visit(feature[self.square_offset()], feature[self.square_offset() + 1]);
  }
}

template <typename Scalar>
Index FilterParameters<Scalar>::natural_parameter_count() const {
  return 1 + (learned_prior_ ? groups_.count * (options_.shape.rank + 1) : 0) +
         options_.shape.dim * (options_.shape.rank + 1 + (options_.shape.diagonal == Diagonal::free ? 1 : 0));
}

template <typename Scalar>
NaturalParameters FilterParameters<Scalar>::natural_parameters() const {
  NaturalParameters result;
  result.precisions.reserve(static_cast<std::size_t>(natural_parameter_count()));
  result.moments.reserve(static_cast<std::size_t>(natural_parameter_count()));
  for_each_parameter(*this, [&](const auto& mean, const auto& variance) {
    const double precision = variance > 0 ? 1 / static_cast<double>(variance) : 0;
    result.precisions.push_back(precision);
    result.moments.push_back(precision * static_cast<double>(mean));
  });
  return result;
}

template <typename Scalar>
void FilterParameters<Scalar>::set_natural_parameters(const NaturalParameters& natural) {
  std::size_t i = 0;
  for_each_parameter(*this, [&]<typename Number>(Number& mean, Number& variance) {
    const double precision = natural.precisions[i];
    const double moment = natural.moments[i++];
    const double next_mean = moment / precision;
    if (!(variance > 0) || !(precision > 0) || !std::isfinite(next_mean) || !std::isfinite(1 / precision)) return;
    mean = static_cast<Number>(next_mean);
    variance = static_cast<Number>(1 / precision);
  });
}

template <typename Scalar>
bool FilterParameters<Scalar>::is_finite() const {
  return std::isfinite(intercept_) && std::isfinite(intercept_variance_) &&
         std::all_of(records_.begin(), records_.end(), [](Scalar number) { return std::isfinite(number); }) &&
         std::all_of(group_records_.begin(), group_records_.end(), [](Scalar number) { return std::isfinite(number); });
}

template <typename Scalar>
std::vector<double> FilterParameters<Scalar>::scales() const {
  std::vector<double> result(static_cast<std::size_t>(options_.shape.dim));
  for (Index j = 0; j < options_.shape.dim; ++j)
    result[static_cast<std::size_t>(j)] = static_cast<double>(record(j)[scale_offset()]);
  return result;
}

template <typename Scalar>
void FilterParameters<Scalar>::archive(Archive& archive) {
  archive.number("square_centre", options_.square_center);
  archive.number("intercept", intercept_);
  archive.number("intercept_variance", intercept_variance_);
  archive.number("rows", rows_);
  archive.number("turns", sign_flips_);
  archive.group("prior", [&] { prior_.archive(archive); });
  archive.vector("signs", signs_, width_);
  if (!(intercept_variance_ >= 0))
    throw std::runtime_error("the training state has a variance of the intercept below 0");
  archive_groups(archive);
  archive_features(archive);
  if (options_.half_life > 0) archive.vector("last_seen", last_occurrence_, options_.shape.dim);
}

/// Archives the features that were added, without the padding of their records.
template <typename Scalar>
void FilterParameters<Scalar>::archive_features(Archive& archive) {
  const Index numbers_per_feature = 2 * options_.shape.rank + archived_field_count;
  std::vector<double> indices;
  std::vector<double> values;
  const auto visit = [&](Index j, auto&& each) {
    Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) each(feature[c]);
    for (Index c = 0; c < options_.shape.rank; ++c) each(feature[width_ + c]);
    for (Index i = 0; i < archived_field_count; ++i) each(feature[weight_offset() + i]);
  };
  if (!archive.is_loading()) {
    indices.assign(added_.begin(), added_.end());
    values.reserve(added_.size() * static_cast<std::size_t>(numbers_per_feature));
    for (const Index j : added_) visit(j, [&](Scalar value) { values.push_back(static_cast<double>(value)); });
  }
  auto count = static_cast<Index>(indices.size());
  archive.number("feature_count", count);
  if (count < 0 || count > options_.shape.dim)
    throw std::runtime_error("the training state has " + std::to_string(count) + " features, the model has " +
                             std::to_string(options_.shape.dim));
  archive.temporary("feature_places", indices, count);
  archive.temporary("features", values, count * numbers_per_feature);
  if (!archive.is_loading()) return;
  for (Index j = 0; j < options_.shape.dim; ++j) std::fill(record(j), record(j) + group_offset(), Scalar(0));
  added_.clear();
  std::size_t next = 0;
  for (const double index : indices) {
    if (!(index >= 0 && index < static_cast<double>(options_.shape.dim)))
      throw std::runtime_error("the training state has a feature index outside of those of the model");
    const auto j = static_cast<Index>(index);
    visit(j, [&](Scalar& value) { value = static_cast<Scalar>(values[next++]); });
    added_.push_back(static_cast<std::int32_t>(j));
    const Scalar* feature = record(j);
    const bool is_valid = std::all_of(feature + width_, feature + 2 * width_, [](Scalar p) { return p >= 0; }) &&
                          feature[weight_offset() + 1] >= 0 && feature[square_offset() + 1] >= 0 &&
                          feature[scale_offset()] > 0;
    if (!is_valid)
      throw std::runtime_error("the training state has a variance below 0 or a scale that is not positive in feature " +
                               std::to_string(j));
  }
}

// The members that are defined in filter_prior.cpp are instantiated there.
template class FilterParameters<float>;
template class FilterParameters<double>;

}  // namespace dyad
