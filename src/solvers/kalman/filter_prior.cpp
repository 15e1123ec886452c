// The hierarchical prior of FilterParameters: prior means and variances, group means, and their estimation.

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "solvers/kalman/feature_noise.h"
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
  return mix(mix(seed + 0x9e3779b97f4a7c15ULL) + static_cast<std::uint64_t>(feature));
}

/// Numbers of all groups and places for the loops over the features, group-major.
template <typename Scalar>
struct PriorConstants {
  PriorConstants(const HierarchicalPrior& prior, Index rank, double relative_prior_mean) {
    for (Index group = 0; group < prior.group_count(); ++group)
      for (Index place = 0; place < prior.places(); ++place) {
        const double tau = prior.variances(group)[static_cast<std::size_t>(place)];
        precision.push_back(static_cast<Scalar>(1 / tau));
        deviation.push_back(static_cast<Scalar>(place < rank ? relative_prior_mean * std::sqrt(tau) : 0));
      }
  }

  std::vector<Scalar> precision;  ///< 1 / tau
  std::vector<Scalar> deviation;  ///< standard deviation of the prior mean
};

constexpr Index bits_per_word = 64;

/// Random signs +1 and -1 of the factors [64 word, 64 (word + 1)) of a feature, one bit each.
std::uint64_t sign_bits(std::uint64_t hash, Index word) {
  return word == 0 ? hash : mix(hash + static_cast<std::uint64_t>(word) * 0x9e3779b97f4a7c15ULL);
}

/// Sign of a bit.
template <typename Scalar>
Scalar sign_of(std::uint64_t bits, Index bit) {
  return Scalar(1) - Scalar(2) * static_cast<Scalar>((bits >> bit) & 1);
}

/// Adds the factors of a feature to the sums of its group, by place. `prior`: of the group.
template <typename Scalar>
inline void add_factors(const Scalar* __restrict means, const Scalar* __restrict variances, Index rank, Scalar scale,
                        std::uint64_t hash, const Scalar* __restrict precision, const Scalar* __restrict deviation,
                        Scalar* __restrict squares, Scalar* __restrict counts) {
  const Scalar square = scale * scale;
  for (Index first = 0; first < rank; first += bits_per_word) {
    const std::uint64_t bits = sign_bits(hash, first / bits_per_word);
    const Index count = std::min(rank - first, bits_per_word);
    for (Index i = 0; i < count; ++i) {
      const Index c = first + i;
      const Scalar difference = means[c] * scale - deviation[c] * sign_of<Scalar>(bits, i);
      squares[c] += difference * difference;
      counts[c] += std::max(Scalar(0), 1 - variances[c] * square * precision[c]);
    }
  }
}

/// Replaces the prior of the factors of a feature: with D = 1 + P (1/tau' - 1/tau),
///   P' = P / D,   m' = (m + P (m0'/tau' - m0/tau)) / D.
/// `precision_change`: 1/tau' - 1/tau. `shift`: m0'/tau' - m0/tau for the sign +1.
template <typename Scalar>
inline void exchange_factor_priors(Scalar* __restrict means, Scalar* __restrict variances, Index rank, Scalar scale,
                                   std::uint64_t hash, const Scalar* __restrict precision_change,
                                   const Scalar* __restrict shift) {
  const Scalar square = scale * scale;
  for (Index first = 0; first < rank; first += bits_per_word) {
    const std::uint64_t bits = sign_bits(hash, first / bits_per_word);
    const Index count = std::min(rank - first, bits_per_word);
    for (Index i = 0; i < count; ++i) {
      const Index c = first + i;
      const Scalar inverse = 1 / (1 + variances[c] * square * precision_change[c]);
      means[c] = (means[c] + variances[c] * scale * shift[c] * sign_of<Scalar>(bits, i)) * inverse;
      variances[c] *= inverse;
    }
  }
}

}  // namespace

template <typename Scalar>
double FilterParameters<Scalar>::random_deviate(Index j, Index c) const {
  const bool is_right = side_of(j) == 1;
  const Index index_in_side = is_right ? j - options_.shape.left_dim : j;
  const std::uint64_t hash = feature_hash(options_.seed, 2 * index_in_side + (is_right ? 1 : 0));
  return sign_of<double>(sign_bits(hash, c / bits_per_word), c % bits_per_word);
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
void FilterParameters<Scalar>::set_to_prior(Index j) {
  Scalar* feature = record(j);
  const Scalar scale = feature[scale_offset()];
  const Scalar inverse = 1 / scale;
  const Scalar* prior = prior_record(group_of(j));
  const auto relative_mean = static_cast<Scalar>(relative_prior_mean_);
  const std::uint64_t hash = hash_of(j);
  for (Index c = 0; c < options_.shape.rank; ++c) {
    const auto sign = sign_of<Scalar>(sign_bits(hash, c / bits_per_word), c % bits_per_word);
    feature[c] = relative_mean * std::sqrt(prior[width_ + c]) * sign * inverse;
    feature[width_ + c] = prior[width_ + c] * inverse * inverse;
  }
  feature[weight_offset() + 1] = prior[weight_offset() + 1] * inverse * inverse;
  feature[square_offset() + 1] = prior[square_offset() + 1] * inverse * inverse * inverse * inverse;
  feature[noise_offset()] = 0;
  feature[noise_offset() + 1] = groups_.has_mean(group_of(j)) ? static_cast<Scalar>(FeatureNoise::log_variance) : 0;
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
    mean_record(group)[scale_offset()] = 1;
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
std::uint64_t FilterParameters<Scalar>::hash_of(Index j) const {
  const Index side = side_of(j);
  return feature_hash(options_.seed, 2 * (side == 1 ? j - options_.shape.left_dim : j) + side);
}

template <typename Scalar>
DYAD_TARGET_CLONES PriorSums FilterParameters<Scalar>::prior_sums() const {
  const Index rank = options_.shape.rank;
  const PriorConstants<Scalar> prior(*learned_prior_, rank, relative_prior_mean_);
  PriorSums sums = learned_prior_->zero_sums();
  std::vector<Scalar> squares(sums.squares.size());
  std::vector<Scalar> counts(sums.counts.size());
  const auto flush = [&] {
    for (std::size_t i = 0; i < squares.size(); ++i) {
      sums.squares[i] += static_cast<double>(std::exchange(squares[i], Scalar(0)));
      sums.counts[i] += static_cast<double>(std::exchange(counts[i], Scalar(0)));
    }
  };
  const Index places = learned_prior_->places();
  const Index weight_place = learned_prior_->weight_place();
  const Index square_place = learned_prior_->square_place();
  Index pending = 0;
  for (const Index j : added_) {
    const Scalar* feature = record(j);
    const Scalar scale = feature[scale_offset()];
    const Index first = group_of(j) * places;
    add_factors(feature, feature + width_, rank, scale, hash_of(j), prior.precision.data() + first,
                prior.deviation.data() + first, squares.data() + first, counts.data() + first);
    const auto add = [&](const Scalar* parameter, Scalar unit, Index place) {
      const Scalar mean = parameter[0] * unit;
      squares[static_cast<std::size_t>(first + place)] += mean * mean;
      counts[static_cast<std::size_t>(first + place)] += std::max(
          Scalar(0), 1 - parameter[1] * unit * unit * prior.precision[static_cast<std::size_t>(first + place)]);
    };
    if (options_.shape.linear) add(feature + weight_offset(), scale, weight_place);
    if (options_.shape.diagonal == Diagonal::free) add(feature + square_offset(), scale * scale, square_place);
    // Sums of many numbers in single precision are inexact.
    constexpr Index max_pending = 1024;
    if (++pending % max_pending == 0) flush();
  }
  flush();
  return sums;
}

/// With the precision L = 1/P - 1/tau that the data adds to a parameter of a feature of scale 1, prior mean m0 and
/// posterior mean m, the posterior under the new prior is
///   1/P' = L + 1/tau',   m' = P' (m/P - m0/tau + m0'/tau').
template <typename Scalar>
DYAD_TARGET_CLONES void FilterParameters<Scalar>::update_prior() {
  if (!learned_prior_) return;
  const Index rank = options_.shape.rank;
  const PriorConstants<Scalar> before(*learned_prior_, rank, relative_prior_mean_);
  learned_prior_->update(prior_sums());
  const PriorConstants<Scalar> after(*learned_prior_, rank, relative_prior_mean_);
  std::vector<Scalar> changes;  // of the precisions
  std::vector<Scalar> shifts;   // changes of the prior means times precisions
  for (std::size_t i = 0; i < before.precision.size(); ++i) {
    changes.push_back(after.precision[i] - before.precision[i]);
    shifts.push_back(after.deviation[i] * after.precision[i] - before.deviation[i] * before.precision[i]);
  }
  const Index places = learned_prior_->places();
  const Index weight_place = learned_prior_->weight_place();
  const Index square_place = learned_prior_->square_place();
  for (const Index j : added_) {
    Scalar* feature = record(j);
    const Scalar scale = feature[scale_offset()];
    const Index first = group_of(j) * places;
    exchange_factor_priors(feature, feature + width_, rank, scale, hash_of(j), changes.data() + first,
                           shifts.data() + first);
    const auto exchange = [&](Scalar* parameter, Scalar unit, Index place) {
      const Scalar inverse = 1 / (1 + parameter[1] * unit * unit * changes[static_cast<std::size_t>(first + place)]);
      parameter[0] *= inverse;
      parameter[1] *= inverse;
    };
    if (options_.shape.linear) exchange(feature + weight_offset(), scale, weight_place);
    if (options_.shape.diagonal == Diagonal::free) exchange(feature + square_offset(), scale * scale, square_place);
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
    for (Index group = 0; group < groups_.count; ++group)
      mean_record(group)[scale_offset()] = groups_.has_mean(group) ? Scalar(1) : Scalar(0);
  }
  archive.group("learned_prior", [&] { learned_prior_->archive(archive); });
  std::vector<double> noise;
  std::vector<double> feature_groups;
  if (!archive.is_loading()) {
    noise.reserve(2 * static_cast<std::size_t>(options_.shape.dim));
    feature_groups.reserve(static_cast<std::size_t>(options_.shape.dim));
    for (Index j = 0; j < options_.shape.dim; ++j) {
      noise.insert(noise.end(), record(j) + noise_offset(), record(j) + noise_offset() + 2);
      feature_groups.push_back(static_cast<double>(group_of(j)));
    }
  }
  archive.temporary("feature_noise", noise, 2 * options_.shape.dim);
  archive.temporary("feature_groups", feature_groups, options_.shape.dim);
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
    const double* multiplier = noise.data() + 2 * j;
    if (!(std::isfinite(multiplier[0]) && multiplier[1] >= 0))
      throw std::runtime_error("the training state has an invalid noise multiplier of feature " + std::to_string(j));
    for (Index i = 0; i < 2; ++i) record(j)[noise_offset() + i] = static_cast<Scalar>(multiplier[i]);
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
  template void FilterParameters<Scalar>::set_to_prior(Index);                           \
  template std::uint64_t FilterParameters<Scalar>::hash_of(Index) const;                 \
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
