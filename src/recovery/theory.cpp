#include "recovery/theory.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/sides.h"
#include "recovery/recovery_error.h"
#include "solvers/moment/change_estimator.h"

namespace dyad {

TheoryPoint measure_theory(const Model<double>& model, const Model<double>& truth, const RecoveryPoint& before,
                           const Batch<double>& batch, ThreadPool& pool) {
  MomentOptions options;
  options.shape.dim = truth.dim();
  options.shape.rank = truth.rank();
  options.moments = Moments::gaussian;
  const ChangeEstimator estimator(options);
  const Sides sides(truth);
  const double epsilon = before.error();

  const auto dM_times = [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> {
    return sides.interactions_times(truth, Z) - sides.interactions_times(model, Z);
  };
  // Sums over the batch with the residuals of `reference`.
  const auto accumulate_sums = [&](const Model<double>& reference, const RowMajorMatrix<double>& Z) {
    MomentAccumulator<double> accumulator(pool, reference, Z);
    batch([&](const Rows<double>& rows) { accumulator.add(rows); });
    return accumulator.total();
  };

  // The matrices below are d x d. Only their products with thin matrices Z are formed, which read the batch once each.
  // Error of the estimated change of M: E = (H1 - h2 I/2) - (M* - M).
  double error_w = 0;
  const double error_M = operator_norm(truth.dim(), [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> {
    const ModelChange change = estimator.estimate(accumulate_sums(model, Z), Z);
    error_w = (change.dw - (as_vector(truth.weights) - as_vector(model.weights))).norm();
    return change.dM_times_Z - dM_times(Z);
  });
  // CI-RIP: A'A(D)/(2n) - tr(D) I/2 - D with D = M* - M. A model with the weights of the truth has the residual A(D).
  Model<double> with_true_weights = model;
  with_true_weights.weights = truth.weights;
  const double half_trace = (truth.mean_interaction() - model.mean_interaction()) / 2;
  const double rip_error = operator_norm(truth.dim(), [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> {
    const MomentSums<double> sums = accumulate_sums(with_true_weights, Z);
    return sums.G() / (2.0 * static_cast<double>(sums.rows)) - half_trace * Z - dM_times(Z);
  });
  const bool has_weights = as_vector(truth.weights).norm() > 0;

  constexpr double rounding_margin = 1 + 1e-9;  // delta is attained, so rounding could violate the bounds
  // Constants of the recursion lemma, with the corrected condition delta eps <= sigma_k / (4 sqrt(5)) (docs/paper.md).
  constexpr double max_tan_theta = 2;  // cos(theta) >= 1/sqrt(5)
  const double four_root_five = 4 * std::sqrt(5.0);
  const double sigma_1 = std::abs(truth.spectrum.front());
  const double sigma_k = std::abs(truth.spectrum.back());
  TheoryPoint theory;
  theory.ci_rip = rip_error / before.error_M;
  theory.delta = rounding_margin * std::max(theory.ci_rip, std::max(error_M, has_weights ? error_w : 0) / epsilon);
  theory.alpha_bound = four_root_five * theory.delta * epsilon / sigma_k;
  theory.beta_bound = has_weights ? theory.delta * epsilon : 0;
  theory.gamma_bound = theory.alpha_bound * sigma_1 + 2 * theory.delta * epsilon;
  theory.factor = (four_root_five * sigma_1 / sigma_k + 3) * theory.delta;
  theory.is_applicable = before.tan_theta <= max_tan_theta && theory.delta * epsilon <= sigma_k / four_root_five;
  if (!theory.is_applicable)
    theory.alpha_bound = theory.beta_bound = theory.gamma_bound = std::numeric_limits<double>::infinity();
  return theory;
}

}  // namespace dyad
