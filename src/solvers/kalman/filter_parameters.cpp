#include "solvers/kalman/filter_parameters.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/random.h"

namespace dyad {
namespace {

constexpr Index linear_numbers = 5;  // weight, its variance, square, its variance, scale

Index rounded_up(Index number, Index unit) { return (number + unit - 1) / unit * unit; }

}  // namespace

double KalmanOptions::unknowns_of_row() const { return std::max(100.0, entries * static_cast<double>(shape.rank + 1)); }

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
      right_first_(right_first_of(options)),
      width_(rounded_up(options.shape.rank, Lanes<Scalar>::count)),
      stride_(rounded_up(2 * width_ + linear_numbers, CacheAligned<Scalar>::line)),
      records_(static_cast<std::size_t>(options.shape.dim * stride_)),
      signs_(static_cast<std::size_t>(width_)),
      intercept_(options.shape.intercept ? prior.intercept_mean : 0),
      intercept_variance_(options.shape.intercept ? prior.intercept : 0) {
  if (options.half_life > 0) last_seen_.resize(static_cast<std::size_t>(options.shape.dim));
  const bool one_sign = options.shape.left_dim > 0 || options.shape.positive;
  const Vector<Scalar> signs =
      one_sign ? Vector<Scalar>::Ones(options.shape.rank) : alternating_signs<Scalar>(options.shape.rank);
  std::copy(signs.begin(), signs.end(), signs_.begin());
}

template <typename Scalar>
void FilterParameters<Scalar>::set_scales(std::span<const double> all) {
  for (Index j = 0; j < options_.shape.dim; ++j)
    record(j)[scale_at()] = static_cast<Scalar>(all[static_cast<std::size_t>(j)]);
}

template <typename Scalar>
void FilterParameters<Scalar>::set(const SignedFactors<Scalar>& start) {
  intercept_ = static_cast<double>(start.intercept);
  std::copy(start.signs.begin(), start.signs.end(), signs_.begin());
  for (Index j = 0; j < options_.shape.dim; ++j) {
    Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) feature[c] = start.A(j, c);
    feature[weight_at()] = start.weights[j];
    if (options_.shape.diagonal != Diagonal::free) continue;
    feature[square_at()] = start.squares[j];
    intercept_ += static_cast<double>(start.squares[j]) * options_.square_centre;
  }
}

template <typename Scalar>
void FilterParameters<Scalar>::set_variances(const SignedFactors<Scalar>& variances) {
  intercept_variance_ = static_cast<double>(variances.intercept);
  for (Index j = 0; j < options_.shape.dim; ++j) {
    Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) feature[width_ + c] = variances.A(j, c);
    feature[weight_at() + 1] = variances.weights[j];
    if (options_.shape.diagonal == Diagonal::free) feature[square_at() + 1] = variances.squares[j];
  }
}

template <typename Scalar>
void FilterParameters<Scalar>::begin(Index j, double scale) {
  record(j)[scale_at()] = static_cast<Scalar>(scale);
  for (Index c = 0; c < options_.shape.rank; ++c) start_at_random(j, c);
  set_variances(j, prior_);
}

template <typename Scalar>
void FilterParameters<Scalar>::set_variances(Index j, const Prior& prior) {
  Scalar* feature = record(j);
  const auto scale = static_cast<double>(feature[scale_at()]);
  if (!(scale > 0)) return;
  const double per_square = 1 / (scale * scale);
  std::fill(feature + width_, feature + width_ + options_.shape.rank, static_cast<Scalar>(prior.factors * per_square));
  if (options_.shape.linear) feature[weight_at() + 1] = static_cast<Scalar>(prior.weights * per_square);
  if (options_.shape.diagonal == Diagonal::free)
    feature[square_at() + 1] = static_cast<Scalar>(prior.squares * per_square * per_square);
}

/// The same number for the same feature, whenever it first appears.
template <typename Scalar>
void FilterParameters<Scalar>::start_at_random(Index j, Index factor) {
  constexpr double part_of_prior = 0.5;
  const bool right = side_of(j) == 1;
  const Index own = right ? j - options_.shape.left_dim : j;
  const Index place = (2 * own + (right ? 1 : 0)) * options_.shape.rank + factor;
  Random random(options_.seed + static_cast<std::uint64_t>(turns_),
                start_stream - 2 - static_cast<std::uint64_t>(place));
  const auto scale = static_cast<double>(record(j)[scale_at()]);
  record(j)[factor] =
      scale > 0 ? static_cast<Scalar>(part_of_prior * std::sqrt(prior_.factors) / scale * random.normal()) : Scalar(0);
}

template <typename Scalar>
void FilterParameters<Scalar>::grow(Index dim, Index left_dim) {
  const Index left_before = options_.shape.left_dim > 0 ? options_.shape.left_dim : options_.shape.dim;
  const Index left_after = options_.shape.left_dim > 0 ? left_dim : dim;
  const Index right_before = options_.shape.dim - left_before;
  const Index right_after = dim - left_after;
  const auto make_room = [&](auto& numbers, Index per_feature, auto value) {
    numbers.insert(numbers.end(), static_cast<std::size_t>((right_after - right_before) * per_feature), value);
    numbers.insert(numbers.begin() + left_before * per_feature,
                   static_cast<std::size_t>((left_after - left_before) * per_feature), value);
  };
  make_room(records_, stride_, Scalar(0));
  if (options_.half_life > 0) make_room(last_seen_, 1, rows_);
  options_.shape.dim = dim;
  options_.shape.left_dim = left_dim;
  right_first_ = right_first_of(options_);
}

template <typename Scalar>
SignedFactors<Scalar> FilterParameters<Scalar>::parameters() const {
  SignedFactors<Scalar> parts;
  parts.left_dim = options_.shape.left_dim;
  parts.diagonal = options_.shape.diagonal;
  parts.weights.resize(options_.shape.dim);
  parts.A.resize(options_.shape.dim, options_.shape.rank);
  parts.signs = as_vector(signs_).head(options_.shape.rank);
  if (options_.shape.diagonal == Diagonal::free) parts.squares.resize(options_.shape.dim);
  double intercept = intercept_;
  for (Index j = 0; j < options_.shape.dim; ++j) {
    const Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) parts.A(j, c) = feature[c];
    parts.weights[j] = feature[weight_at()];
    if (options_.shape.diagonal != Diagonal::free) continue;
    parts.squares[j] = feature[square_at()];
    intercept -= static_cast<double>(feature[square_at()]) * options_.square_centre;
  }
  parts.intercept = static_cast<Scalar>(intercept);
  return parts;
}

template <typename Scalar>
Posterior<Scalar> FilterParameters<Scalar>::posterior() const {
  Posterior<Scalar> result{parameters(), parameters()};
  SignedFactors<Scalar>& variances = result.variances;
  variances.intercept = static_cast<Scalar>(intercept_variance_);
  for (Index j = 0; j < options_.shape.dim; ++j) {
    const Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) variances.A(j, c) = feature[width_ + c];
    variances.weights[j] = feature[weight_at() + 1];
    if (options_.shape.diagonal == Diagonal::free) variances.squares[j] = feature[square_at() + 1];
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

/// visit(mean, variance) of the intercept and of the numbers of each feature, there or not.
template <typename Scalar>
template <typename Self, typename Visit>
void FilterParameters<Scalar>::for_each_parameter(Self& self, Visit&& visit) {
  visit(self.intercept_, self.intercept_variance_);
  for (Index j = 0; j < self.options_.shape.dim; ++j) {
    auto* feature = self.record(j);
    for (Index c = 0; c < self.options_.shape.rank; ++c) visit(feature[c], feature[self.width_ + c]);
    visit(feature[self.weight_at()], feature[self.weight_at() + 1]);
    if (self.options_.shape.diagonal == Diagonal::free) visit(feature[self.square_at()], feature[self.square_at() + 1]);
  }
}

template <typename Scalar>
Index FilterParameters<Scalar>::natural_parameter_count() const {
  return 1 + options_.shape.dim * (options_.shape.rank + 1 + (options_.shape.diagonal == Diagonal::free ? 1 : 0));
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
void FilterParameters<Scalar>::take(const NaturalParameters& natural) {
  std::size_t place = 0;
  for_each_parameter(*this, [&]<typename Number>(Number& mean, Number& variance) {
    const double precision = natural.precisions[place];
    const double moment = natural.moments[place++];
    const double next = moment / precision;
    if (!(variance > 0) || !(precision > 0) || !std::isfinite(next) || !std::isfinite(1 / precision)) return;
    mean = static_cast<Number>(next);
    variance = static_cast<Number>(1 / precision);
  });
}

template <typename Scalar>
bool FilterParameters<Scalar>::is_finite() const {
  return std::isfinite(intercept_) && std::isfinite(intercept_variance_) &&
         std::all_of(records_.begin(), records_.end(), [](Scalar number) { return std::isfinite(number); });
}

template <typename Scalar>
std::vector<double> FilterParameters<Scalar>::scales() const {
  std::vector<double> result(static_cast<std::size_t>(options_.shape.dim));
  for (Index j = 0; j < options_.shape.dim; ++j)
    result[static_cast<std::size_t>(j)] = static_cast<double>(record(j)[scale_at()]);
  return result;
}

template <typename Scalar>
void FilterParameters<Scalar>::archive(Archive& archive) {
  archive.number("square_centre", options_.square_centre);
  archive.number("intercept", intercept_);
  archive.number("intercept_variance", intercept_variance_);
  archive.number("rows", rows_);
  archive.number("turns", turns_);
  archive.group("prior", [&] { prior_.archive(archive); });
  archive.vector("signs", signs_, width_);
  if (!(intercept_variance_ >= 0)) throw std::runtime_error("the training state has a variance below 0");
  archive_features(archive);
  if (options_.half_life > 0) archive.vector("last_seen", last_seen_, options_.shape.dim);
}

/// Only features that are there, and of each only its numbers.
template <typename Scalar>
void FilterParameters<Scalar>::archive_features(Archive& archive) {
  const Index numbers = 2 * options_.shape.rank + linear_numbers;
  std::vector<double> places;
  std::vector<Scalar> values;
  const auto visit = [&](Index j, auto&& each) {
    Scalar* feature = record(j);
    for (Index c = 0; c < options_.shape.rank; ++c) each(feature[c]);
    for (Index c = 0; c < options_.shape.rank; ++c) each(feature[width_ + c]);
    for (Index i = 0; i < linear_numbers; ++i) each(feature[weight_at() + i]);
  };
  if (!archive.is_loading())
    for (Index j = 0; j < options_.shape.dim; ++j) {
      if (!(record(j)[scale_at()] > 0)) continue;
      places.push_back(static_cast<double>(j));
      visit(j, [&](Scalar value) { values.push_back(value); });
    }
  auto count = static_cast<Index>(places.size());
  archive.number("feature_count", count);
  if (count < 0 || count > options_.shape.dim)
    throw std::runtime_error("the training state has more features than the model");
  archive.vector("feature_places", places, count);
  archive.vector("features", values, count * numbers);
  if (!archive.is_loading()) return;
  std::fill(records_.begin(), records_.end(), Scalar(0));
  std::size_t next = 0;
  for (const double place : places) {
    if (!(place >= 0 && place < static_cast<double>(options_.shape.dim)))
      throw std::runtime_error("the training state has a feature that the model has not");
    const auto j = static_cast<Index>(place);
    visit(j, [&](Scalar& value) { value = values[next++]; });
    const Scalar* feature = record(j);
    const bool is_possible = std::all_of(feature + width_, feature + 2 * width_, [](Scalar p) { return p >= 0; }) &&
                             feature[weight_at() + 1] >= 0 && feature[square_at() + 1] >= 0 && feature[scale_at()] > 0;
    if (!is_possible) throw std::runtime_error("the training state has a variance below 0");
  }
}

template class FilterParameters<float>;
template class FilterParameters<double>;

}  // namespace dyad
