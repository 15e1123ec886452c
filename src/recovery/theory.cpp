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

  const auto dM_times = [&](const Tall<double>& Z) -> Tall<double> {
    return sides.interactions_times(truth, Z) - sides.interactions_times(model, Z);
  };
  const auto sums_against = [&](const Model<double>& measured, const Tall<double>& Z) {
    MomentAccumulator<double> accumulator(pool, measured, Z);
    batch([&](const Rows<double>& rows) { accumulator.add(rows); });
    return accumulator.total();
  };

  // Both are d x d and known by their products with thin matrices: one reading of the batch each.
  // E = (H1 - h2 I/2) - (M* - M)
  double error_w = 0;
  const double error_M = operator_norm(truth.dim(), [&](const Tall<double>& Z) -> Tall<double> {
    const Change change = estimator.change(sums_against(model, Z), Z);
    error_w = (change.dw - (as_vector(truth.weights) - as_vector(model.weights))).norm();
    return change.dM_times_Z - dM_times(Z);
  });
  // A'A(D)/(2n) - tr(D) I/2 - D with D = M* - M: the residual without its linear part is A(D)
  Model<double> quadratic = model;
  quadratic.weights = truth.weights;
  const double half_trace = (truth.mean_of_interactions() - model.mean_of_interactions()) / 2;
  const double rip_error = operator_norm(truth.dim(), [&](const Tall<double>& Z) -> Tall<double> {
    const MomentSums<double> sums = sums_against(quadratic, Z);
    return sums.G() / (2.0 * static_cast<double>(sums.rows)) - half_trace * Z - dM_times(Z);
  });
  const bool has_weights = as_vector(truth.weights).norm() > 0;

  constexpr double rounding = 1 + 1e-9;
  const double four_root_five = 4 * std::sqrt(5.0);
  const double strongest = std::abs(truth.spectrum.front());
  const double weakest = std::abs(truth.spectrum.back());
  TheoryPoint theory;
  theory.ci_rip = rip_error / before.error_M;
  theory.delta = rounding * std::max(theory.ci_rip, std::max(error_M, has_weights ? error_w : 0) / epsilon);
  theory.alpha_bound = four_root_five * theory.delta * epsilon / weakest;
  theory.beta_bound = has_weights ? theory.delta * epsilon : 0;
  theory.gamma_bound = theory.alpha_bound * strongest + 2 * theory.delta * epsilon;
  theory.factor = (four_root_five * strongest / weakest + 3) * theory.delta;
  theory.applies = before.tan_theta <= 2 && theory.delta * epsilon <= weakest / four_root_five;
  if (!theory.applies)
    theory.alpha_bound = theory.beta_bound = theory.gamma_bound = std::numeric_limits<double>::infinity();
  return theory;
}

}  // namespace dyad
