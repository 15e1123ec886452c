#include "solvers/gauss_newton/gauss_newton.h"

#include <cmath>

#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/gauss_newton/moment_start.h"

namespace dyad {

NewtonFit fit_gauss_newton(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                           const SignedFactors<double>* start) {
  LevenbergMarquardt solver(rows, options, pool);
  solver.start(start != nullptr ? *start : compute_moment_start(rows, options, pool).to_parameters(options));
  solver.run();
  NewtonFit fit;
  fit.parameters = solver.parameters();
  fit.mean_squared_residual = 2 * solver.loss();
  fit.is_exact = solver.is_exact();
  fit.is_finite = std::isfinite(fit.mean_squared_residual);
  fit.steps = solver.steps();
  fit.passes = solver.passes();
  return fit;
}

}  // namespace dyad
