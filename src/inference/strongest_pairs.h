#pragma once

#include <vector>

#include <dyad/model.h>

#include "linalg/matrix.h"

namespace dyad {

/// Coefficient of the product x_i x_j, where i = `left` and j = `right`: 2 M_ij for i != j, and M_jj + squares_j for
/// i = j. Bilinear: M_ij of the product x_i z_j.
struct Pair {
  Index left = 0;
  Index right = 0;
  double coefficient = 0;
};

struct StrongestPairs {
  std::vector<Pair> pairs;  ///< by decreasing |coefficient|
  bool is_exact = true;     ///< whether these are the pairs with the largest |coefficient|
  double bound = 0;         ///< upper bound on |coefficient| of all other pairs; 0 if no pairs were requested
};

/// Coefficients M_jj + squares_j of x_j^2 in a symmetric model. Exactly 0 if the two cancel up to rounding.
Vector<double> total_square_coefficients(const Model<double>& model);

/// Bounds the time of the search in models with many features: one product takes O(rank). Sensitivity:
/// docs/constants.md.
inline constexpr Index default_max_products = 300'000'000;

/// Finds the `top` pairs with the largest |coefficient| without forming all d^2 of them. Features are sorted by the
/// norm of their factors. By the Cauchy-Schwarz inequality the product of two norms bounds the coefficient, so the
/// search ends when no remaining pair can exceed the weakest of the `top` pairs found so far, or after `max_products`
/// inner products.
///
/// `linear_groups`: group of each feature, starting at 0; -1: none; empty: none for all. At most one feature of a group
/// differs from 0 in a row, so two features of the same group are not a pair. The square of a feature in a group is a
/// linear term and is omitted.
StrongestPairs strongest_pairs(const Model<double>& model, Index top, const std::vector<Index>& linear_groups = {},
                               Index max_products = default_max_products);

}  // namespace dyad
