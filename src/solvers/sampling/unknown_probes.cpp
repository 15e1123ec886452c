#include "solvers/sampling/unknown_probes.h"

#include <algorithm>
#include <cmath>

#include "solvers/sampling/random_draws.h"

namespace dyad {
namespace {

/// Rows per group. The mean of 64 values of log v, whose standard deviation is about 0.5, has a standard error of 0.06:
/// 3% of a standard deviation of predictions.
constexpr Index max_probes_per_group = 64;
constexpr double min_probe_variance = 1e-8;  // targets have variance 1

}  // namespace

template <typename Scalar>
UnknownProbes::UnknownProbes(const Rows<Scalar>& rows, const FeatureGroups& groups, const ModelShape& shape,
                             std::uint64_t seed)
    : shape_(shape), group_count_(groups.count) {
  const auto group_of = [&](Index j) { return static_cast<Index>(groups.group_of[static_cast<std::size_t>(j)]); };
  std::vector<Index> counts(static_cast<std::size_t>(groups.count));
  Random random(seed, start_stream - 3);
  const Index tries = std::min(rows.count(), max_probes_per_group * std::max<Index>(1, groups.count) * 4);
  for (Index attempt = 0; attempt < tries; ++attempt) {
    const auto i = static_cast<Index>(random.uniform() * static_cast<double>(rows.count()));
    std::vector<Entry> entries;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (x != 0) entries.push_back({j, static_cast<double>(x)});
    });
    for (const Entry& replaced : entries) {
      const Index group = group_of(replaced.feature);
      if (counts[static_cast<std::size_t>(group)] >= max_probes_per_group) continue;
      Probe probe{.group = group, .is_right = replaced.feature >= shape.left_dim, .entries = {}};
      for (const Entry& entry : entries)
        if (entry.feature != replaced.feature) probe.entries.push_back(entry);
      probes_.push_back(std::move(probe));
      ++counts[static_cast<std::size_t>(group)];
    }
  }
}

double UnknownProbes::predict(const Probe& probe, const GibbsSampler& sampler, Random& random) const {
  const GibbsSampler::Sample& sample = sampler.sample();
  const Index rank = shape_.rank;
  const bool is_bilinear = shape_.is_bilinear();
  std::vector<double> q(static_cast<std::size_t>(2 * rank));
  const double* means = sample.hyperpriors.means(probe.group);
  const double* precisions = sample.hyperpriors.precisions(probe.group);
  double f = sample.intercept + means[rank] + random.normal() / std::sqrt(precisions[rank]);
  double diagonal = 0;
  const auto add = [&](bool is_right, Index c, double value) {
    q[static_cast<std::size_t>(is_bilinear && is_right ? rank + c : c)] += value;
    diagonal += value * value;
  };
  for (Index c = 0; c < rank; ++c) add(probe.is_right, c, means[c] + random.normal() / std::sqrt(precisions[c]));
  for (const Entry& entry : probe.entries) {
    f += entry.value * static_cast<double>(sample.parameters.weight(entry.feature)) +
         entry.value * entry.value * static_cast<double>(sample.parameters.square(entry.feature));
    for (Index c = 0; c < rank; ++c)
      add(entry.feature >= shape_.left_dim, c,
          entry.value * static_cast<double>(sample.parameters.at(entry.feature, c)));
  }
  for (Index c = 0; c < rank; ++c) {
    const double left = q[static_cast<std::size_t>(c)];
    f += is_bilinear ? left * q[static_cast<std::size_t>(rank + c)] : left * left / 2;
  }
  return is_bilinear ? f : f - diagonal / 2;
}

void UnknownProbes::add(const GibbsSampler& sampler) {
  Random random = draw_random(sampler.options().seed, sampler.sweeps(), DrawPurpose::probes, 0);
  for (Probe& probe : probes_) {
    const double f = predict(probe, sampler, random);
    probe.sum += f;
    probe.squares += f * f;
  }
  samples_ += 1;
}

std::vector<double> UnknownProbes::coefficients(const VarianceModel& model) const {
  std::vector<double> sums(static_cast<std::size_t>(group_count_));
  std::vector<double> counts(sums.size());
  for (const Probe& probe : probes_) {
    const double mean = probe.sum / samples_;
    double log_variance =
        std::log(std::max(min_probe_variance, probe.squares / samples_ - mean * mean)) - model.intercept;
    for (const Entry& entry : probe.entries)
      log_variance -= model.coefficients[static_cast<std::size_t>(entry.feature)] * entry.value * entry.value;
    sums[static_cast<std::size_t>(probe.group)] += log_variance;
    counts[static_cast<std::size_t>(probe.group)] += 1;
  }
  double largest = 0;
  for (std::size_t group = 0; group < sums.size(); ++group) {
    if (counts[group] == 0) continue;
    sums[group] /= counts[group];
    largest = std::max(largest, sums[group]);
  }
  for (std::size_t group = 0; group < sums.size(); ++group)
    if (counts[group] == 0) sums[group] = largest;
  return sums;
}

template UnknownProbes::UnknownProbes(const Rows<float>&, const FeatureGroups&, const ModelShape&, std::uint64_t);
template UnknownProbes::UnknownProbes(const Rows<double>&, const FeatureGroups&, const ModelShape&, std::uint64_t);

}  // namespace dyad
