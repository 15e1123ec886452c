#include "solvers/anova/model_assembly.h"

#include <algorithm>

#include "linalg/multiply.h"

namespace dyad {

AnovaModel make_anova_model(const std::vector<std::unique_ptr<Term>>& terms, const TermSums& sums,
                            const VarianceFit& fit) {
  AnovaModel model;
  AnovaPosterior& posterior = model.posterior;
  posterior.root = fit.root;
  std::vector<const FittedAxis*> used;
  const auto axis_index = [&](const FittedAxis* axis) {
    const auto found = std::find(used.begin(), used.end(), axis);
    if (found != used.end()) return static_cast<Index>(found - used.begin());
    used.push_back(axis);
    model.axes.push_back(axis->axis);
    return static_cast<Index>(used.size()) - 1;
  };
  posterior.center.resize(fit.root.rows());
  Index first = 0;  // first direction of the block
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Term& term = *terms[t];
    AnovaBlock block;
    block.axes.push_back(axis_index(term.first));
    if (term.is_pair()) block.axes.push_back(axis_index(term.second));
    block.values.assign(term.values.data(), term.values.data() + term.values.size());
    const auto fitted = as_vector(term.fitted);
    block.variance = (fitted.array() - fitted.mean()).square().mean();
    const RowMajorMatrix<double>& directions = fit.factors[t];
    RowMajorMatrix<double> F = multiply(term.basis, directions);
    posterior.center.segment(first, F.cols()) =
        directions.transpose() * sums.centers().segment(sums.first(t), term.basis.cols());
    // T is lower triangular: rows above the block are 0.
    const auto columns = fit.root.bottomRows(fit.root.rows() - first).middleCols(first, F.cols());
    const Vector<double> deviations = multiply(columns, F.transpose()).colwise().norm();
    block.deviations.assign(deviations.data(), deviations.data() + deviations.size());
    first += F.cols();
    posterior.factors.push_back(std::move(F));
    model.blocks.push_back(std::move(block));
  }
  return model;
}

}  // namespace dyad
