#pragma once

#include <functional>

#include <dyad/model.h>

#include "linalg/matrix.h"

namespace dyad {

/// Errors of an estimated model against the planted one. All are computed from the factors in O(k^2 d), or in O(k d)
/// per product with a vector; no d x d matrix is formed.

/// |M - M*|_2. If the planted model has `squares`, the diagonals of both matrices are excluded.
double interaction_error(const Model<double>& model, const Model<double>& truth);

/// Euclidean norm of the differences of the coefficients M_jj + squares_j; 0 if the planted model has no `squares`.
double square_error(const Model<double>& model, const Model<double>& truth);

/// Tangent of the largest canonical angle between the column spaces of U and U*; infinite if it is 90 degrees.
/// Bilinear: the maximum over (U, U*) and (V, V*).
double tan_largest_angle(const Model<double>& model, const Model<double>& truth);

/// min(|a - a*|, |a + a*|) for M = aa' (phase retrieval).
double amplitude_error(const Model<double>& model, const Model<double>& truth);

/// Spectral norm of a symmetric operator that is given by its products A Z, computed by subspace iteration. The result
/// is a lower bound with a relative error of about 1%.
double operator_norm(Index dim, const std::function<RowMajorMatrix<double>(const RowMajorMatrix<double>&)>& A_times);

}  // namespace dyad
