#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include <dyad/moment.h>

#include "base/workers.h"
#include "model/signed_factors.h"

namespace dyad {

struct NewtonOptions {
  Index left_dim = 0;  ///< as in Model
  Index rank = 8;
  bool linear = true;
  bool intercept = true;
  bool positive = false;  ///< all signs are +
  Diagonal diagonal = Diagonal::tied;
  bool restarts = true;  ///< with other numbers of positive factors, where the fit is not exact
  Index most_products = std::numeric_limits<Index>::max();  ///< looks at all rows, in all
  std::uint64_t seed = 1;
  std::function<bool()> interrupted;  ///< asked between steps; true ends the fit where it is
};

template <typename Scalar>
struct NewtonFit {
  SignedFactors<Scalar> parameters;
  double residual_squares = 0;  ///< their mean, by weight
  bool exact = false;           ///< nothing is left but rounding
  bool finite = false;
  Index starts = 0;
  Index steps = 0;
  Index products = 0;  ///< looks at all rows
};

/// Least squares over (b, w, squares, A) on rows that are kept, by Gauss-Newton steps (Levenberg-Marquardt), each
/// solved by conjugate gradients. It starts from the moments of the rows, whose features are expected to have mean 0
/// and variance 1, roughly; or first from parameters that are known.
template <typename Scalar>
NewtonFit<Scalar> gauss_newton(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers,
                               const SignedFactors<Scalar>* known = nullptr);

}  // namespace dyad
