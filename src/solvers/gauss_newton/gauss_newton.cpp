#include "solvers/gauss_newton/gauss_newton.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/gauss_newton/moment_start.h"
#include "solvers/gauss_newton/phase_start.h"

namespace dyad {
namespace {

/// Numbers of positive factors to try, in the order of their distance from `moment_count`, the number of positive
/// eigenvalues of the moment estimate.
std::vector<Index> list_positive_counts(const NewtonOptions& options, Index moment_count) {
  if (options.shape.positive || options.shape.left_dim > 0) return {options.shape.rank};
  std::vector<Index> counts;
  for (Index a = 0; a <= options.shape.rank; ++a) counts.push_back(a);
  std::stable_sort(counts.begin(), counts.end(),
                   [&](Index a, Index b) { return std::abs(a - moment_count) < std::abs(b - moment_count); });
  if (!options.sign_restarts) counts.resize(1);
  return counts;
}

}  // namespace

NewtonFit fit_gauss_newton(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                           const SignedFactors<double>* warm_start) {
  LevenbergMarquardt solver(rows, options, pool);
  NewtonFit best;
  const auto fit_from = [&](SignedFactors<double> start) {
    solver.start(std::move(start));
    solver.run();
    const double mean_square = 2 * solver.loss();
    if (best.starts == 0 || mean_square < best.mean_squared_residual) {
      best.parameters = solver.parameters();
      best.mean_squared_residual = mean_square;
      best.is_exact = solver.is_exact();
      best.is_finite = std::isfinite(mean_square);
    }
    ++best.starts;
    best.steps = solver.steps();
    best.passes = solver.passes();
  };
  if (warm_start != nullptr) fit_from(*warm_start);
  if (best.is_exact || (warm_start != nullptr && !options.sign_restarts)) return best;
  if (options.shape.is_phase_retrieval() && can_compute_phase_start(rows.dim())) {
    PhaseStart start = compute_phase_start(rows, options);
    fit_from(std::move(start.parameters));
    best.passes += start.passes;
    return best;
  }
  const MomentStart moments = compute_moment_start(rows, options, pool);
  for (const Index positive : list_positive_counts(options, moments.count_positive(options.shape.rank))) {
    fit_from(moments.to_parameters(options, positive));
    if (best.is_exact || (options.interrupted && options.interrupted())) break;
  }
  return best;
}

}  // namespace dyad
