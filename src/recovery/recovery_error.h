#pragma once

#include <functional>

#include <dyad/model.h>

#include "linalg/matrix.h"

namespace dyad {

/// All from the factors, in O(k^2 d), or O(k d) for each of a few products; no d x d matrix.

/// |M - M*|_2; off the diagonal alone where the models have squares of their own.
double interaction_error(const Model<double>& model, const Model<double>& truth);

/// On the coefficients M_jj + squares_j, in the Euclidean norm.
double square_error(const Model<double>& model, const Model<double>& truth);

/// Tangent of the largest canonical angle between the spans of U and U* (bilinear: of V and V* too); infinite where
/// they share no direction.
double tan_largest_angle(const Model<double>& model, const Model<double>& truth);

/// |a - a*| with M = aa', the smaller over the sign of a.
double amplitude_error(const Model<double>& model, const Model<double>& truth);

/// |A|_2 of a symmetric operator known by its products A Z alone, to about 1% from below, by subspace iteration.
double operator_norm(Index dim, const std::function<Tall<double>(const Tall<double>&)>& A_times);

}  // namespace dyad
