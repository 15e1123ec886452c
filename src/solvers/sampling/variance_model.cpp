#include "solvers/sampling/variance_model.h"

#include <algorithm>
#include <cmath>

namespace dyad {
namespace {

/// Sweeps of coordinate descent. The change of log v in the last one is below 1% on the data sets of docs/method.md.
constexpr int descent_sweeps = 20;
/// Penalty on t_j^2, in units of the variance of log v given the features, which is about 1.
constexpr double log_variance_ridge = 1;
/// Smallest variance, which keeps its logarithm finite. Targets have variance 1.
constexpr double min_sample_variance = 1e-8;

}  // namespace

VarianceModel VarianceModel::fit(const FeatureColumns& columns, std::span<const double> variances,
                                 std::span<const float> weights) {
  VarianceModel model;
  model.coefficients.resize(static_cast<std::size_t>(columns.dim()));
  std::vector<double> residuals(variances.size());
  double rows = 0;
  for (std::size_t i = 0; i < variances.size(); ++i) {
    residuals[i] = std::log(std::max(min_sample_variance, variances[i]));
    rows += weights[i] > 0 ? 1 : 0;
  }
  const auto is_used = [&](std::int32_t row) { return weights[static_cast<std::size_t>(row)] > 0; };
  for (int sweep = 0; sweep < descent_sweeps; ++sweep) {
    double mean = 0;
    for (std::size_t i = 0; i < residuals.size(); ++i) mean += weights[i] > 0 ? residuals[i] / std::max(1.0, rows) : 0;
    model.intercept += mean;
    for (double& residual : residuals) residual -= mean;
    for (Index j = 0; j < columns.dim(); ++j) {
      const FeatureColumns::Column column = columns.column(j);
      double& coefficient = model.coefficients[static_cast<std::size_t>(j)];
      double gradient = -log_variance_ridge * coefficient;
      double curvature = log_variance_ridge;
      for (Index e = 0; e < column.count(); ++e) {
        if (!is_used(column.rows[static_cast<std::size_t>(e)])) continue;
        const double x = static_cast<double>(column.value(e));
        gradient += residuals[static_cast<std::size_t>(column.row(e))] * x * x;
        curvature += x * x * x * x;
      }
      const double change = gradient / curvature;
      coefficient += change;
      for (Index e = 0; e < column.count(); ++e) {
        const double x = static_cast<double>(column.value(e));
        residuals[static_cast<std::size_t>(column.row(e))] -= change * x * x;
      }
    }
  }
  return model;
}

}  // namespace dyad
