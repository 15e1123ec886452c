// The hierarchical prior of FilterParameters: prior means and variances, group means, and their estimation.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "solvers/kalman/filter_parameters.h"

namespace dyad {
namespace {

/// Variance of a group mean before data, relative to the initial prior variance. Sensitivity: docs/constants.md.
constexpr double relative_mean_variance = 0.3;
/// Standard deviation of the initial group means of factors, relative to that of their prior. Sensitivity:
/// docs/constants.md.
constexpr double relative_initial_mean = 0.2;

/// Mixes all bits of a word: the finalizer of SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom
/// number generators").
std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

std::uint64_t feature_hash(std::uint64_t seed, Index feature) {
  return mix(mix(seed + 0x9e3779b97f4a7c15ULL) + static_cast<std::uint64_t>(feature)) | 1;
}

/// Random number c of a feature: uniform with mean 0 and variance 1.
double deviate(std::uint64_t hash, Index c) {
  // Uniform in (-1, 1), divided by its standard deviation 1 / sqrt(3).
  constexpr double unit = std::numbers::sqrt3 * 0x1p-31;
  std::uint64_t bits = hash + static_cast<std::uint64_t>(c) * 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 32)) * 0xbf58476d1ce4e5b9ULL;
  return unit * static_cast<double>(static_cast<std::int32_t>(bits >> 32));
}

/// Numbers of a group for the loops over its features, by place.
struct GroupConstants {
  std::vector<double> precision;  ///< 1 / tau
  std::vector<double> deviation;  ///< standard deviation of the prior mean
};

GroupConstants constants_of(std::span<const double> tau, Index rank, double relative_prior_mean) {
  GroupConstants result;
  for (std::size_t place = 0; place < tau.size(); ++place) {
    result.precision.push_back(1 / tau[place]);
    result.deviation.push_back(static_cast<Index>(place) < rank ? relative_prior_mean * std::sqrt(tau[place]) : 0);
  }
  return result;
}

std::vector<GroupConstants> constants_of(const HierarchicalPrior& prior, Index rank, double relative_prior_mean) {
  std::vector<GroupConstants> result;
  for (Index group = 0; group < prior.group_count(); ++group)
    result.push_back(constants_of(prior.variances(group), rank, relative_prior_mean));
  return result;
}

/// Adds the factors of a feature to the sums of its group, by place.
template <typename Scalar>
DYAD_TARGET_CLONES void add_factors(const Scalar* __restrict means, const Scalar* __restrict variances, Index rank,
                                    double scale, std::uint64_t hash, const double* __restrict precision,
                                    const double* __restrict deviation, double* __restrict squares,
                                    double* __restrict counts) {
  const double square = scale * scale;
  for (Index c = 0; c < rank; ++c) {
    const double difference = static_cast<double>(means[c]) * scale - deviation[c] * deviate(hash, c);
    squares[c] += difference * difference;
    counts[c] += std::max(0.0, 1 - static_cast<double>(variances[c]) * square * precision[c]);
  }
}

/// Replaces the prior of the factors of a feature. `shift`: prior mean times precision after minus before, divided by
/// the random deviate.
template <typename Scalar>
DYAD_TARGET_CLONES void exchange_factor_priors(Scalar* __restrict means, Scalar* __restrict variances, Index rank,
                                               double scale, std::uint64_t hash, const double* __restrict before,
                                               const double* __restrict after, const double* __restrict shift) {
  const double square = scale * scale;
  const double inverse = 1 / scale;
  for (Index c = 0; c < rank; ++c) {
    const double precision = 1 / (static_cast<double>(variances[c]) * square);
    const double moment = precision * static_cast<double>(means[c]) * scale + shift[c] * deviate(hash, c);
    const double variance = 1 / (std::max(0.0, precision - before[c]) + after[c]);
    means[c] = static_cast<Scalar>(variance * moment * inverse);
    variances[c] = static_cast<Scalar>(variance * inverse * inverse);
  }
}

}  // namespace

template <typename Scalar>
double FilterParameters<Scalar>::random_deviate(Index j, Index c) const {
  const bool is_right = side_of(j) == 1;
  const Index index_in_side = is_right ? j - options_.shape.left_dim : j;
  return deviate(feature_hash(options_.seed, 2 * index_in_side + (is_right ? 1 : 0)), c);
}

template <typename Scalar>
double FilterParameters<Scalar>::prior_mean(Index j, Index c, double tau) const {
  return relative_prior_mean_ * std::sqrt(tau) * random_deviate(j, c);
}

template <typename Scalar>
double FilterParameters<Scalar>::mean_prior_variance(Index place) const {
  return relative_mean_variance * learned_prior_->initial(place);
}

template <typename Scalar>
template <typename Number, typename Visit>
void FilterParameters<Scalar>::for_each_place(Number* record, Visit&& visit) const {
  for (Index c = 0; c < options_.shape.rank; ++c) visit(record[c], record[width_ + c], c);
  if (options_.shape.linear)
    visit(record[weight_offset()], record[weight_offset() + 1], learned_prior_->weight_place());
  if (options_.shape.diagonal == Diagonal::free)
    visit(record[square_offset()], record[square_offset() + 1], learned_prior_->square_place());
}

template <typename Scalar>
void FilterParameters<Scalar>::set_prior_variances(Index j) {
  Scalar* feature = record(j);
  const auto scale = static_cast<double>(feature[scale_offset()]);
  const std::span<const double> tau = learned_prior_->variances(group_of(j));
  for_each_place(feature, [&](Scalar&, Scalar& variance, Index place) {
    const double power = place == learned_prior_->square_place() ? std::pow(scale, 4) : scale * scale;
    variance = static_cast<Scalar>(tau[static_cast<std::size_t>(place)] / power);
  });
}

template <typename Scalar>
void FilterParameters<Scalar>::set_prior_records() {
  for (Index group = 0; group < groups_.count; ++group) {
    const std::span<const double> tau = learned_prior_->variances(group);
    for_each_place(mean_record(group) + stride_, [&](Scalar& mean, Scalar& variance, Index place) {
      mean = 0;
      variance = static_cast<Scalar>(tau[static_cast<std::size_t>(place)]);
    });
  }
}

template <typename Scalar>
void FilterParameters<Scalar>::start_group_means() {
  for (Index group = 0; group < groups_.count; ++group) {
    if (!groups_.has_mean(group)) continue;
    for_each_place(mean_record(group), [&](Scalar& mean, Scalar& variance, Index place) {
      if (place == learned_prior_->square_place()) return;
      const double prior_variance = mean_prior_variance(place);
      variance = static_cast<Scalar>(prior_variance);
      // Deviates of feature -1 - group, which does not exist.
      if (place != learned_prior_->weight_place())
        mean =
            static_cast<Scalar>(relative_initial_mean * std::sqrt(prior_variance) * random_deviate(-1 - group, place));
    });
  }
}

template <typename Scalar>
PriorSums FilterParameters<Scalar>::prior_sums() const {
  PriorSums sums = learned_prior_->zero_sums();
  const Index rank = options_.shape.rank;
  const std::vector<GroupConstants> constants = constants_of(*learned_prior_, rank, relative_prior_mean_);
  for (const Index j : added_) {
    const Scalar* feature = record(j);
    const auto scale = static_cast<double>(feature[scale_offset()]);
    const Index group = group_of(j);
    const GroupConstants& prior = constants[static_cast<std::size_t>(group)];
    double* squares = sums.squares.data() + group * learned_prior_->places();
    double* counts = sums.counts.data() + group * learned_prior_->places();
    add_factors(feature, feature + width_, rank, scale,
                feature_hash(options_.seed, 2 * (side_of(j) == 1 ? j - options_.shape.left_dim : j) + side_of(j)),
                prior.precision.data(), prior.deviation.data(), squares, counts);
    const auto add = [&](const Scalar* parameter, double unit, Index place) {
      const double mean = static_cast<double>(parameter[0]) * unit;
      squares[place] += mean * mean;
      counts[place] += std::max(
          0.0, 1 - static_cast<double>(parameter[1]) * unit * unit * prior.precision[static_cast<std::size_t>(place)]);
    };
    if (options_.shape.linear) add(feature + weight_offset(), scale, learned_prior_->weight_place());
    if (options_.shape.diagonal == Diagonal::free)
      add(feature + square_offset(), scale * scale, learned_prior_->square_place());
  }
  return sums;
}

/// With the precision L = 1/P - 1/tau that the data adds to a parameter of a feature of scale 1, prior mean m0 and
/// posterior mean m, the posterior under the new prior is
///   1/P' = L + 1/tau',   m' = P' (m/P - m0/tau + m0'/tau').
template <typename Scalar>
void FilterParameters<Scalar>::update_prior() {
  if (!learned_prior_) return;
  const Index rank = options_.shape.rank;
  const std::vector<GroupConstants> before = constants_of(*learned_prior_, rank, relative_prior_mean_);
  learned_prior_->update(prior_sums());
  const std::vector<GroupConstants> after = constants_of(*learned_prior_, rank, relative_prior_mean_);
  std::vector<std::vector<double>> shifts;
  for (std::size_t group = 0; group < before.size(); ++group) {
    shifts.emplace_back();
    for (std::size_t place = 0; place < static_cast<std::size_t>(rank); ++place)
      shifts.back().push_back(after[group].deviation[place] * after[group].precision[place] -
                              before[group].deviation[place] * before[group].precision[place]);
  }
  for (const Index j : added_) {
    Scalar* feature = record(j);
    const auto scale = static_cast<double>(feature[scale_offset()]);
    const auto group = static_cast<std::size_t>(group_of(j));
    exchange_factor_priors(
        feature, feature + width_, rank, scale,
        feature_hash(options_.seed, 2 * (side_of(j) == 1 ? j - options_.shape.left_dim : j) + side_of(j)),
        before[group].precision.data(), after[group].precision.data(), shifts[group].data());
    const auto exchange = [&](Scalar* parameter, double unit, Index place) {
      const auto at = static_cast<std::size_t>(place);
      const double precision = 1 / (static_cast<double>(parameter[1]) * unit * unit);
      const double variance = 1 / (std::max(0.0, precision - before[group].precision[at]) + after[group].precision[at]);
      parameter[0] = static_cast<Scalar>(variance * precision * static_cast<double>(parameter[0]));
      parameter[1] = static_cast<Scalar>(variance / (unit * unit));
    };
    if (options_.shape.linear) exchange(feature + weight_offset(), scale, learned_prior_->weight_place());
    if (options_.shape.diagonal == Diagonal::free)
      exchange(feature + square_offset(), scale * scale, learned_prior_->square_place());
  }
  set_prior_records();
}

template <typename Scalar>
void FilterParameters<Scalar>::scale_evidence(Index j, double share) {
  Scalar* feature = record(j);
  const auto scale = static_cast<double>(feature[scale_offset()]);
  const std::span<const double> tau = learned_prior_->variances(group_of(j));
  for_each_place(feature, [&](Scalar& mean, Scalar& variance, Index place) {
    const double unit = place == learned_prior_->square_place() ? scale * scale : scale;
    const double prior_precision = unit * unit / tau[static_cast<std::size_t>(place)];
    const double precision = 1 / static_cast<double>(variance);
    const double remaining = std::max(0.0, precision - prior_precision) * share + prior_precision;
    mean = static_cast<Scalar>(static_cast<double>(mean) * precision * share / remaining);
    variance = static_cast<Scalar>(1 / remaining);
  });
}

template <typename Scalar>
void FilterParameters<Scalar>::scale_mean_evidence(Index group, double share) {
  if (!groups_.has_mean(group)) return;
  for_each_place(mean_record(group), [&](Scalar& mean, Scalar& variance, Index place) {
    if (!(variance > 0)) return;
    const double prior_precision = 1 / mean_prior_variance(place);
    const double precision = 1 / static_cast<double>(variance);
    const double remaining = std::max(0.0, precision - prior_precision) * share + prior_precision;
    mean = static_cast<Scalar>(static_cast<double>(mean) * precision * share / remaining);
    variance = static_cast<Scalar>(1 / remaining);
  });
}

template <typename Scalar>
std::vector<std::int32_t> FilterParameters<Scalar>::feature_groups() const {
  std::vector<std::int32_t> groups;
  for (Index j = 0; j < options_.shape.dim; ++j) groups.push_back(static_cast<std::int32_t>(group_of(j)));
  return groups;
}

template <typename Scalar>
void FilterParameters<Scalar>::add_group_means(SignedFactors<Scalar>& parameters) const {
  const Index rank = options_.shape.rank;
  if (!groups_.one_feature_per_row) {
    for (Index j = 0; j < options_.shape.dim; ++j) {
      const Scalar* mean = mean_record(group_of(j));
      for (Index c = 0; c < rank; ++c) parameters.A(j, c) += mean[c];
      parameters.weights[j] += mean[weight_offset()];
    }
    return;
  }
  // Row with the sum m of the means: f contains (m + d)' S (m + d) with d the sum of the deviations, minus the terms of
  // single features if the diagonal is not tied.
  const bool is_tied = options_.shape.diagonal == Diagonal::tied;
  Vector<double> total = Vector<double>::Zero(rank);
  double intercept = 0;
  const auto sign = [&](Index c) { return static_cast<double>(signs_[static_cast<std::size_t>(c)]); };
  for (Index group = 0; group < groups_.count; ++group) {
    const Scalar* mean = mean_record(group);
    intercept += static_cast<double>(mean[weight_offset()]);
    for (Index c = 0; c < rank; ++c) {
      const auto m = static_cast<double>(mean[c]);
      total[c] += m;
      if (!is_tied) intercept -= sign(c) * m * m;
    }
  }
  for (Index c = 0; c < rank; ++c) intercept += sign(c) * total[c] * total[c];
  parameters.intercept = static_cast<Scalar>(static_cast<double>(parameters.intercept) + intercept);
  for (Index j = 0; j < options_.shape.dim; ++j) {
    const Scalar* mean = mean_record(group_of(j));
    double weight = 0;
    for (Index c = 0; c < rank; ++c) {
      const double others = total[c] - (is_tied ? 0 : static_cast<double>(mean[c]));
      weight += 2 * sign(c) * static_cast<double>(parameters.A(j, c)) * others;
    }
    parameters.weights[j] = static_cast<Scalar>(static_cast<double>(parameters.weights[j]) + weight);
  }
}

template <typename Scalar>
void FilterParameters<Scalar>::archive_groups(Archive& archive) {
  bool learns = learns_prior();
  if (archive.is_loading() && !archive.has("learns_prior")) {
    learned_prior_.reset();
    group_records_.clear();
    return;
  }
  archive.number("learns_prior", learns);
  if (!learns) {
    learned_prior_.reset();
    group_records_.clear();
    return;
  }
  archive.number("group_count", groups_.count);
  archive.number("relative_prior_mean", relative_prior_mean_);
  constexpr Index max_groups = Index{1} << 24;  // larger group numbers are not exact in single precision
  if (groups_.count < 1 || groups_.count > max_groups)
    throw std::runtime_error("the training state has an invalid number of prior groups");
  archive.number("one_feature_per_row", groups_.one_feature_per_row);
  std::vector<double> have_mean(static_cast<std::size_t>(groups_.count));
  for (std::size_t g = 0; g < have_mean.size(); ++g) have_mean[g] = groups_.has_mean(static_cast<Index>(g)) ? 1 : 0;
  archive.vector("groups_with_mean", have_mean, groups_.count);
  groups_.have_mean.assign(have_mean.begin(), have_mean.end());
  if (archive.is_loading()) {
    learned_prior_.emplace(groups_.count, options_.shape.rank, 1, 1, 1);
    group_records_.assign(static_cast<std::size_t>(2 * groups_.count * stride_), Scalar(0));
  }
  archive.group("learned_prior", [&] { learned_prior_->archive(archive); });
  std::vector<double> feature_groups;
  for (Index j = 0; j < options_.shape.dim; ++j) feature_groups.push_back(static_cast<double>(group_of(j)));
  archive.vector("feature_groups", feature_groups, options_.shape.dim);
  std::vector<Scalar> means;
  const auto visit_means = [&](auto&& visit) {
    for (Index group = 0; group < groups_.count; ++group)
      for_each_place(mean_record(group), [&](Scalar& mean, Scalar& variance, Index) {
        visit(mean);
        visit(variance);
      });
  };
  visit_means([&](Scalar& value) { means.push_back(value); });
  archive.vector("group_means", means, static_cast<Index>(means.size()));
  if (!archive.is_loading()) return;
  std::size_t next = 0;
  visit_means([&](Scalar& value) { value = means[next++]; });
  for (Index j = 0; j < options_.shape.dim; ++j) {
    const double group = feature_groups[static_cast<std::size_t>(j)];
    if (!(group >= 0 && group < static_cast<double>(groups_.count)))
      throw std::runtime_error("the training state has an invalid prior group of feature " + std::to_string(j));
    set_group(j, static_cast<Index>(group));
  }
  set_prior_records();
}

#define DYAD_INSTANTIATE(Scalar)                                                         \
  template double FilterParameters<Scalar>::prior_mean(Index, Index, double) const;      \
  template double FilterParameters<Scalar>::random_deviate(Index, Index) const;          \
  template double FilterParameters<Scalar>::mean_prior_variance(Index) const;            \
  template void FilterParameters<Scalar>::set_prior_variances(Index);                    \
  template void FilterParameters<Scalar>::set_prior_records();                           \
  template void FilterParameters<Scalar>::start_group_means();                           \
  template PriorSums FilterParameters<Scalar>::prior_sums() const;                       \
  template void FilterParameters<Scalar>::update_prior();                                \
  template void FilterParameters<Scalar>::scale_evidence(Index, double);                 \
  template void FilterParameters<Scalar>::scale_mean_evidence(Index, double);            \
  template std::vector<std::int32_t> FilterParameters<Scalar>::feature_groups() const;   \
  template void FilterParameters<Scalar>::add_group_means(SignedFactors<Scalar>&) const; \
  template void FilterParameters<Scalar>::archive_groups(Archive&);
DYAD_INSTANTIATE(float)
DYAD_INSTANTIATE(double)
#undef DYAD_INSTANTIATE

}  // namespace dyad
