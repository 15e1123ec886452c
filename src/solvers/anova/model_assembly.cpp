#include "solvers/anova/model_assembly.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linalg/multiply.h"

namespace dyad {

std::vector<VarianceBlock> make_variance_blocks(const std::vector<std::unique_ptr<Term>>& terms,
                                                const std::vector<Index>& offsets) {
  std::vector<VarianceBlock> blocks(terms.size());
  for (std::size_t t = 0; t < terms.size(); ++t) {
    blocks[t].first = offsets[t];
    blocks[t].count = terms[t]->basis.cols();
    for (const TermKernel& kernel : terms[t]->kernels)
      blocks[t].components.push_back({&kernel.factor, &kernel.covariance, kernel.theta, kernel.tie, kernel.penalty});
  }
  return blocks;
}

VarianceOptions make_variance_options(const AnovaOptions& options, double scale) {
  VarianceOptions result;
  result.is_noise_fixed = options.is_classification;
  result.max_theta = scale;
  result.penalty_offset = 1e-4 * scale;
  result.interrupted = options.interrupted;
  return result;
}

double held_out_loss(const VarianceFit& fit, double weight, const AnovaOptions& options) {
  if (options.is_classification) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(fit.rss / weight) / std::max(1 / weight, 1 - (fit.effective_dof + 1) / weight);
}

void set_variances(const std::vector<VarianceBlock>& blocks, const std::vector<std::unique_ptr<Term>>& terms) {
  for (std::size_t t = 0; t < terms.size(); ++t)
    for (std::size_t c = 0; c < terms[t]->kernels.size(); ++c)
      terms[t]->kernels[c].theta = blocks[t].components[c].theta;
}

AnovaFit assemble_fit(const std::vector<std::unique_ptr<Term>>& terms, const std::vector<Index>& offsets,
                      const CenteredSums& sums, const Vector<double>& centers, const VarianceFit& fit) {
  AnovaFit result;
  AnovaModel& model = result.model;
  AnovaPosterior& posterior = model.posterior;
  posterior.root = fit.root;
  std::vector<const FittedAxis*> used;
  const auto axis_index = [&](const FittedAxis* axis) {
    const auto found = std::find(used.begin(), used.end(), axis);
    if (found != used.end()) return static_cast<Index>(found - used.begin());
    used.push_back(axis);
    model.axes.push_back(axis->axis);
    result.prior.means.push_back(axis->means);
    return static_cast<Index>(used.size()) - 1;
  };
  posterior.center.resize(fit.root.rows());
  Index first = 0;  // first direction of the block
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Term& term = *terms[t];
    const Index count = term.basis.cols();
    AnovaBlock block;
    block.axes.push_back(axis_index(term.first));
    if (term.is_pair()) block.axes.push_back(axis_index(term.second));
    block.values.assign(term.values.data(), term.values.data() + term.values.size());
    const auto gamma = fit.gamma.segment(offsets[t], count);
    block.variance = gamma.dot(sums.H.block(offsets[t], offsets[t], count, count) * gamma) / sums.weight;
    const RowMajorMatrix<double>& directions = fit.factors[t];
    RowMajorMatrix<double> F = multiply(term.basis, directions);
    posterior.center.segment(first, F.cols()) = directions.transpose() * centers.segment(offsets[t], count);
    // T is lower triangular: rows above the block are 0.
    const auto columns = fit.root.bottomRows(fit.root.rows() - first).middleCols(first, F.cols());
    const Vector<double> deviations = multiply(columns, F.transpose()).colwise().norm();
    block.deviations.assign(deviations.data(), deviations.data() + deviations.size());
    first += F.cols();
    posterior.factors.push_back(std::move(F));
    model.blocks.push_back(std::move(block));
    result.prior.blocks.emplace_back();
    for (const TermKernel& kernel : term.kernels)
      result.prior.blocks.back().push_back({kernel.kernel, kernel.theta, kernel.tie, kernel.penalty});
  }
  result.log_evidence = fit.log_evidence;
  result.effective_dof = fit.effective_dof;
  result.prior.noise_variance = fit.noise_variance;
  return result;
}

}  // namespace dyad
