#pragma once

#include <vector>

#include <dyad/model.h>

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

/// The `top` strongest pairs. Two features of one group (numbers from 0 on; -1: none), such as two categories of one
/// column, never occur together and are no pair; without groups all are. Features are taken in the order of the length
/// of their factors, whose product bounds the coefficient: the search ends where no pair left can be strong enough, or
/// after so many `products`.
StrongestPairs strongest_pairs(const Model<double>& model, Index top, const std::vector<Index>& groups = {},
                               Index products = 300'000'000);

}  // namespace dyad
