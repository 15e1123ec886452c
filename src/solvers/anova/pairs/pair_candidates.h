#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "solvers/anova/pairs/pair_screen.h"
#include "solvers/anova/terms.h"

namespace dyad {

/// A candidate of a round: a new pair, or a finer grid of a chosen pair.
struct Candidate {
  std::unique_ptr<Term> term;
  PairGain gain;
  double gain_per_knot = 0;
  Index replaced = -1;  ///< index of the term with the coarser grid; -1: new pair
  Index added_knots = 0;
};

/// Limits of a finer grid.
struct PairKnotLimits {
  Index per_pair = 0;   ///< coefficients of the grid
  Index added = 0;      ///< coefficients in addition to those of the present grid
  double min_gain = 0;  ///< nats
};

/// A pair of columns at a resolution and its gain.
Candidate evaluate_candidate(AxisCache& axes, std::pair<Index, Index> columns, std::pair<Index, Index> knots,
                             const ScreenRows& rows);

/// Resolutions of the grids that are finer than that of a pair.
std::vector<std::pair<Index, Index>> finer_grids(const Term& term);

/// The finer grid of a pair with the largest gain per added coefficient; no term if no grid is within the limits.
/// `rows`: residuals with the function of the pair added back. The gain of the present grid is subtracted.
Candidate find_finer_grid(const Term& term, AxisCache& axes, const ScreenRows& rows, const PairKnotLimits& limits);

}  // namespace dyad
