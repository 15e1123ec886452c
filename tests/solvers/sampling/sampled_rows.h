#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "solvers/sampling/gibbs_sampler.h"
#include "support.h"

namespace dyad::test {

/// Rows with one non-zero entry in each of `entries` groups of dim / entries features, and normal targets. The value is
/// 1 (`ones`) or normal.
inline OwnedRows<double> grouped_rows(Index count, Index dim, Index entries, bool ones, std::uint64_t seed) {
  Random random(seed, 0);
  RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(count, dim);
  const Index levels = dim / entries;
  for (Index i = 0; i < count; ++i)
    for (Index e = 0; e < entries; ++e)
      X(i, e * levels + static_cast<Index>(random.uniform() * static_cast<double>(levels))) =
          ones ? 1 : 0.5 + random.uniform();
  std::vector<double> y(static_cast<std::size_t>(count));
  for (double& target : y) target = random.normal();
  return {std::move(X), std::move(y)};
}

/// Group of each feature of grouped_rows().
inline PriorGroups groups_of(Index dim, Index entries) {
  std::vector<std::int32_t> groups;
  for (Index j = 0; j < dim; ++j) groups.push_back(static_cast<std::int32_t>(j / (dim / entries)));
  return PriorGroups(std::vector<std::string>(static_cast<std::size_t>(entries)), std::move(groups));
}

/// A sampler with everything that it refers to.
struct OwnedSampler {
  FeatureColumns columns;
  FeatureGroups groups;
  ColourClasses colours;
  GibbsSampler sampler;

  OwnedSampler(const Rows<double>& rows, const PriorGroups& prior_groups, const SamplerOptions& options,
               ThreadPool& threads)
      : columns(std::span<const Rows<double>>(&rows, 1)),
        groups(FeatureGroups::of(prior_groups, columns)),
        colours(columns, groups.colouring_order(columns)),
        sampler(columns, groups, colours, options, threads) {}
  OwnedSampler(const OwnedSampler&) = delete;
};

inline SamplerOptions sampler_options(Index dim, Index rank, Diagonal diagonal, bool is_classification,
                                      Index left_dim = 0) {
  SamplerOptions options;
  options.shape.dim = dim;
  options.shape.left_dim = left_dim;
  options.shape.rank = rank;
  options.shape.diagonal = left_dim > 0 ? Diagonal::tied : diagonal;
  options.is_classification = is_classification;
  return options;
}

/// Linear predictor of a row of a sample, from the definition of the model.
inline double brute_force_predictor(const GibbsSampler::Sample& sample, const SamplerOptions& options,
                                    const Eigen::Ref<const Eigen::RowVectorXd>& x) {
  const FeatureParameters& parameters = sample.parameters;
  double f = sample.intercept;
  for (Index i = 0; i < x.size(); ++i) {
    f += x[i] * static_cast<double>(parameters.weight(i)) + x[i] * x[i] * static_cast<double>(parameters.square(i));
    for (Index j = i + 1; j < x.size(); ++j) {
      if (options.shape.is_bilinear() && (i >= options.shape.left_dim) == (j >= options.shape.left_dim)) continue;
      for (Index c = 0; c < options.shape.rank; ++c)
        f += x[i] * x[j] * static_cast<double>(parameters.at(i, c)) * static_cast<double>(parameters.at(j, c));
    }
  }
  return f;
}

}  // namespace dyad::test
