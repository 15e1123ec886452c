#pragma once

#include "linalg/matrix.h"

namespace dyad {

/// Sampling errors that the shifted CI-RIP theorem and the five concentration lemmas of Lin and Ye (2016) bound, for n
/// rows x_i with Gaussian features, X = [x_1, ..., x_n], A(M)_i = x_i'M x_i and A'(r) = sum r_i x_i x_i'. Each has
/// expectation 0 and decreases like 1/sqrt(n). Computed with d x d matrices; measure_theory() does not form them.
struct ConcentrationErrors {
  Matrix<double> ci_rip;      ///< A'A(M)/(2n) - tr(M) I/2 - M
  double trace = 0;           ///< 1'A(M)/n - tr(M)
  double mean = 0;            ///< 1'X'w/n
  Matrix<double> linear;      ///< A'(X'w)/n
  Vector<double> quadratic;   ///< X A(M)/n
  Matrix<double> covariance;  ///< XX'/n - I
};

/// Errors for fixed w and symmetric M. `rows`: one row x_i' per line.
ConcentrationErrors measure_concentration(const RowMajorMatrix<double>& rows, const Matrix<double>& M,
                                          const Vector<double>& w);

/// Largest absolute eigenvalue of a symmetric matrix.
double spectral_norm(const Matrix<double>& A);

}  // namespace dyad
