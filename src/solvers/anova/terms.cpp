#include "solvers/anova/terms.h"

#include <algorithm>
#include <numeric>

#include "linalg/cholesky.h"
#include "linalg/multiply.h"

namespace dyad {
namespace {

Vector<double> mean_hats(const AnovaAxis& axis, const HatRows& hats, std::span<const double> weights) {
  const BlockRows rows{&hats, nullptr, axis.size(), 1};
  if (weights.empty()) {
    const std::vector<double> ones(static_cast<std::size_t>(hats.count()), 1.0);
    return basis_moments(rows, ones) / static_cast<double>(std::max<Index>(1, hats.count()));
  }
  return basis_moments(rows, weights) / std::accumulate(weights.begin(), weights.end(), 0.0);
}

}  // namespace

FittedAxis::FittedAxis(AnovaAxis knots, const ColumnTable& table, std::span<const double> weights)
    : axis(std::move(knots)), hats(axis, table), means(mean_hats(axis, hats, weights)), kernels(axis, means) {}

FittedAxis::FittedAxis(AnovaAxis knots, Vector<double> hat_means)
    : axis(std::move(knots)), means(std::move(hat_means)), kernels(axis, means) {}

AxisCache::AxisCache(const ColumnTable& table, std::span<const double> weights) : table_(table), weights_(weights) {
  for (std::size_t j = 0; j < table.columns.size(); ++j)
    distributions_.emplace_back(table.columns[j], static_cast<Index>(j), weights);
}

const FittedAxis& AxisCache::insert(std::pair<Index, Index> key, AnovaAxis axis) {
  auto& slot = axes_[key];
  if (!slot) slot = std::make_unique<FittedAxis>(std::move(axis), table_, weights_);
  return *slot;
}

const FittedAxis& AxisCache::get(Index column, Index knots) {
  const ColumnDistribution& values = distribution(column);
  const std::pair key{column, std::min(knots, values.distinct())};
  const auto found = axes_.find(key);
  return found != axes_.end() ? *found->second : insert(key, values.make_axis(knots));
}

const FittedAxis& AxisCache::get_main(Index column) {
  return insert({column, -1}, distribution(column).make_main_axis(static_cast<Index>(distributions_.size())));
}

BlockRows Term::rows() const {
  return {&first->hats, is_pair() ? &second->hats : nullptr, first->axis.size(), is_pair() ? second->axis.size() : 1};
}

std::vector<BlockKernel> Term::default_kernels() const {
  return is_pair() ? pair_kernels(first->kernels, second->kernels) : main_kernels(first->kernels);
}

Matrix<double> Term::kernel_factor(const BlockKernel& kernel, Index max_columns) const {
  const Matrix<double>& U = *first->kernels.factor(kernel.first);
  return kernel.second ? pair_factor(U, *second->kernels.factor(*kernel.second), max_columns) : U;
}

void Term::set_kernels(const std::vector<BlockKernel>& block_kernels) {
  kernels.clear();
  std::vector<Matrix<double>> factors;
  Matrix<double> sum = Matrix<double>::Zero(size(), size());
  for (const BlockKernel& kernel : block_kernels) {
    factors.push_back(kernel_factor(kernel, size()));
    sum += outer_gram(factors.back());
    kernels.emplace_back().kernel = kernel;
  }
  const PivotedCholesky decomposition(std::move(sum));
  basis = decomposition.factor();
  for (std::size_t c = 0; c < factors.size(); ++c) {
    kernels[c].factor = decomposition.solve(factors[c]);
    kernels[c].covariance = outer_gram(kernels[c].factor);
  }
}

void Term::set_straight_kernels(bool has_squares) {
  std::vector<BlockKernel> straight;
  for (const AxisKernel kernel : {AxisKernel::linear, AxisKernel::square, AxisKernel::white})
    if (first->kernels.has(kernel) && (has_squares || kernel != AxisKernel::square) &&
        (kernel != AxisKernel::white || !first->kernels.has(AxisKernel::linear) || first->axis.has_missing_level))
      straight.push_back({kernel, std::nullopt});
  set_kernels(straight);
  for (TermKernel& kernel : kernels) kernel.tie = static_cast<Index>(kernel.kernel.first);
}

}  // namespace dyad
