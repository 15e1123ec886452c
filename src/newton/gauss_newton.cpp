#include "newton/gauss_newton.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "newton/descent.h"
#include "newton/phase_start.h"
#include "newton/start.h"

namespace dyad {
namespace {

/// Numbers of positive factors to try, the moments' own first.
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

template <typename Scalar>
NewtonFit<Scalar> gauss_newton(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers,
                               const SignedFactors<Scalar>* known) {
  Descent<Scalar> descent(rows, options, workers);
  NewtonFit<Scalar> best;
  const auto try_from = [&](SignedFactors<Scalar> start) {
    descent.start(std::move(start));
    descent.run();
    const double squares = 2 * descent.loss();
    if (best.starts == 0 || squares < best.residual_squares) {
      best.parameters = descent.parameters();
      best.residual_squares = squares;
      best.exact = descent.is_exact();
      best.finite = std::isfinite(squares);
    }
    ++best.starts;
    best.steps = descent.steps();
    best.products = descent.products();
  };
  if (known != nullptr) try_from(*known);
  if (best.exact || (known != nullptr && !options.restarts)) return best;
  if (options.shape.is_phase_retrieval() && can_search_phases(rows.dim())) {
    PhaseStart<Scalar> start = phase_start(rows, options);
    try_from(std::move(start.parameters));
    best.products += start.looks;
    return best;
  }
  const MomentStart<Scalar> moments = moment_start(rows, options, workers);
  for (const Index positive : sign_counts(options, moments.positive_count(options.shape.rank))) {
    try_from(moments.take(options, positive));
    if (best.exact || (options.interrupted && options.interrupted())) break;
  }
  return best;
}

template struct NewtonFit<float>;
template struct NewtonFit<double>;
template NewtonFit<float> gauss_newton(const Rows<float>&, const NewtonOptions&, Workers&, const SignedFactors<float>*);
template NewtonFit<double> gauss_newton(const Rows<double>&, const NewtonOptions&, Workers&,
                                        const SignedFactors<double>*);

}  // namespace dyad
