#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "solvers/anova/pairs/pair_candidates.h"
#include "solvers/anova/term_fit.h"

namespace dyad {

/// Adds functions of pairs of columns to a fit of single columns. Rounds add pairs, or refine the grids of chosen
/// pairs, in the order of their gain in evidence per coefficient. The remaining pairs share one variance per kernel.
/// Does not own the fit; the caller keeps it alive.
class PairSelection {
 public:
  explicit PairSelection(TermFit& fit);

  /// Adds the candidates of a round with the largest gains. Returns false if there are none.
  bool add_round();
  /// Adds the remaining pairs on coarse grids with one variance per kernel, as far as the limit on coefficients allows.
  /// If they do not increase TermFit::score(), products of straight lines are tried instead.
  void add_shared_pairs();

  [[nodiscard]] Index rounds() const { return rounds_; }
  /// Pairs with variances of their own.
  [[nodiscard]] Index pairs() const { return pair_count_; }

 private:
  /// New pairs on the coarse grid whose gain exceeds the threshold. The gain of the pairs with the largest approximate
  /// gains is computed exactly.
  std::vector<Candidate> screen_pairs(Index limit);
  /// For each chosen pair the finer grid with the largest gain per added coefficient, if it exceeds the threshold. The
  /// function of the pair is added back to the residuals, and the gain of the present grid is subtracted.
  std::vector<Candidate> screen_finer_grids();
  /// Starting variances of the kernels of a candidate.
  void set_prior(Candidate& candidate) const;
  void add_terms(const std::set<Index>& replaced, std::vector<std::unique_ptr<Term>> added,
                 const EstimationEffort& effort);
  /// Functions of the pairs without a term on grids of `knots` knots per axis.
  std::vector<std::unique_ptr<Term>> make_shared_pairs(Index knots);

  TermFit& fit_;
  std::size_t main_count_;                      ///< number of terms of single columns, which come first
  std::vector<std::pair<Index, Index>> pairs_;  ///< pairs of columns without a term
  double min_gain_ = 0;                         ///< nats
  Index coarse_knots_ = 0;                      ///< per axis of a new pair
  Index pair_knots_ = 0;                        ///< coefficients of all pairs
  Index pair_count_ = 0;
  Index rounds_ = 0;
};

}  // namespace dyad
