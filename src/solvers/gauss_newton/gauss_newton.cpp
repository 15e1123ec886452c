#include "solvers/gauss_newton/gauss_newton.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/gauss_newton/moment_start.h"
#include "solvers/gauss_newton/phase_start.h"

namespace dyad {
namespace {

/// Numbers of positive factors to try, in the order of their distance from that of the moments.
std::vector<Index> sign_counts(const NewtonOptions& options, Index own) {
  if (options.shape.positive || options.shape.left_dim > 0) return {options.shape.rank};
  std::vector<Index> counts;
  for (Index a = 0; a <= options.shape.rank; ++a) counts.push_back(a);
  std::stable_sort(counts.begin(), counts.end(),
                   [&](Index a, Index b) { return std::abs(a - own) < std::abs(b - own); });
  if (!options.restarts) counts.resize(1);
  return counts;
}

}  // namespace

NewtonFit gauss_newton(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                       const SignedFactors<double>* known) {
  LevenbergMarquardt solver(rows, options, pool);
  NewtonFit best;
  const auto try_from = [&](SignedFactors<double> start) {
    solver.start(std::move(start));
    solver.run();
    const double squares = 2 * solver.loss();
    if (best.starts == 0 || squares < best.residual_squares) {
      best.parameters = solver.parameters();
      best.residual_squares = squares;
      best.exact = solver.is_exact();
      best.finite = std::isfinite(squares);
    }
    ++best.starts;
    best.steps = solver.steps();
    best.products = solver.products();
  };
  if (known != nullptr) try_from(*known);
  if (best.exact || (known != nullptr && !options.restarts)) return best;
  if (options.shape.is_phase_retrieval() && can_search_phases(rows.dim())) {
    PhaseStart start = phase_start(rows, options);
    try_from(std::move(start.parameters));
    best.products += start.products;
    return best;
  }
  const MomentStart moments = moment_start(rows, options, pool);
  for (const Index positive : sign_counts(options, moments.positive_count(options.shape.rank))) {
    try_from(moments.take(options, positive));
    if (best.exact || (options.interrupted && options.interrupted())) break;
  }
  return best;
}

}  // namespace dyad
