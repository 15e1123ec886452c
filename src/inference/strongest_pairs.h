#pragma once

#include <vector>

#include <dyad/model.h>

#include "linalg/matrix.h"

namespace dyad {

/// The coefficient of x_left x_right: 2 M_ij, or M_jj + squares_j for a square; bilinear: M_ij, j counting within z.
struct Pair {
  Index left = 0;
  Index right = 0;
  double coefficient = 0;
};

struct StrongestPairs {
  std::vector<Pair> pairs;  ///< strongest first
  bool exact = true;        ///< no other pair is stronger than the last of them
  double bound = 0;         ///< no other pair is stronger than this
};

/// The coefficients of x_j^2 of a symmetric model, M_jj + squares_j; 0 where the two cancel up to rounding.
Vector<double> square_coefficients(const Model<double>& model);

/// The `top` strongest pairs. `linear_groups`, unless empty: of each feature, from 0 on; -1: none. Two features of a
/// group never occur together and are no pair, and the square of a feature of a group is linear and is left out.
/// Features are taken in the order of the length of their factors, whose product bounds the coefficient: the search
/// ends where no pair left can be strong enough, or after so many `products`.
StrongestPairs strongest_pairs(const Model<double>& model, Index top, const std::vector<Index>& linear_groups = {},
                               Index products = 300'000'000);

}  // namespace dyad
