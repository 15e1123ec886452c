#pragma once

#include <dyad/rows.h>

#include "base/workers.h"
#include "model/signed_factors.h"
#include "newton/newton_options.h"

namespace dyad {

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
