#include "solvers/gauss_newton/gauss_newton.h"

#include <cmath>
#include <utility>

#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/gauss_newton/moment_start.h"

namespace dyad {

NewtonFit fit_gauss_newton(LevenbergMarquardt& solver, SignedFactors<double> start) {
  solver.start(std::move(start));
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

NewtonFit fit_gauss_newton(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                           const SignedFactors<double>* start) {
  LevenbergMarquardt solver(rows, options, pool);
  return fit_gauss_newton(solver,
                          start != nullptr ? *start : compute_moment_start(rows, options, pool).to_parameters(options));
}

}  // namespace dyad
