#pragma once

#include <limits>
#include <vector>

#include <dyad/data.h>
#include <dyad/rows.h>

#include "base/thread_pool.h"
#include "likelihood/likelihood.h"
#include "linalg/simd.h"
#include "model/posterior.h"
#include "solvers/variational/equations.h"
#include "solvers/variational/incidence.h"

namespace dyad {

/// Coordinate ascent on the variational bound of the model with an independent Gaussian posterior, for diagonals that
/// are not tied: given all others, a prediction is linear in the parameters of one feature, f = f_rest + theta'g, and
/// their best posterior has precisions tau + sum rho E[g^2] and means (tau + sum rho E[g g'])^-1 sum rho E[g (y -
/// f_rest)]. Noise, the priors' precisions tau (of weights, of squares, of each factor) and the bounds of classes are
/// learned on the way. Features that never occur in the same row do not see each other, so that they are updated at the
/// same time. Results do not depend on the number of threads.
template <typename Scalar>
class VariationalSweeps {
 public:
  /// Rows without weight are left out. Their owner keeps them.
  VariationalSweeps(const Rows<Scalar>& rows, LikelihoodPointer likelihood, const Posterior<Scalar>& start,
                    ThreadPool& pool);

  /// All of the updates below, each once.
  void sweep();

  void look_at_rows();  ///< residuals and noise, or the bounds of classes; before anything else
  void move_intercept();
  void move_features(std::size_t group);
  void learn_priors();

  [[nodiscard]] std::size_t group_count() const { return rows_.groups.size(); }
  /// Of the log-likelihood. No update lowers it. One look at all rows.
  [[nodiscard]] double bound() const;

  [[nodiscard]] Posterior<Scalar> posterior() const;
  [[nodiscard]] double noise_variance() const { return 1 / noise_precision_; }
  [[nodiscard]] double total_weight() const { return total_weight_; }
  /// Of the priors: of each factor, large where the data has no use for it, of weights, of squares.
  [[nodiscard]] std::vector<double> precisions() const;

  /// What the sweeps over rows like these need.
  [[nodiscard]] static double bytes_for(double rows, double entries_of_row, Index rank);

 private:
  struct RowTotals;
  using Numbers = FeatureEquations::Numbers;
  using Occurrences = typename Incidence<Scalar>::Occurrences;

  /// A feature's parameters, as its equations number them: the factors, padded to whole vectors, the weight, the
  /// square, padding.
  [[nodiscard]] Index weight_at() const { return width_; }
  [[nodiscard]] Index square_at() const { return width_ + 1; }
  /// A feature's numbers: the factors' means, their variances, the means of all others, their variances.
  [[nodiscard]] const double* record(Index j) const { return records_.data() + j * 2 * stride_; }
  [[nodiscard]] Index mean_at(Index place) const { return place < width_ ? place : width_ + place; }
  [[nodiscard]] Index variance_at(Index place) const { return place < width_ ? width_ + place : stride_ + place; }

  void take(const Posterior<Scalar>& start);
  void move_feature(Index j, FeatureEquations& own);
  /// Of feature j, its occurrences [first, first + count).
  template <bool deep>
  void add_rows(Index j, Index first, Index count, FeatureEquations& own) const;
  template <bool deep>
  void move_rows(Index j, Index first, Index count, FeatureEquations& own);
  void fetch_ahead(const Occurrences& of, Index e) const;
  template <bool deep>
  void find_slopes(Index j, Index first, Index count, FeatureEquations& own) const;
  [[nodiscard]] double look_at_block(Index first, Index count);
  [[nodiscard]] double bound_of_block(Index first, Index count) const;
  [[nodiscard]] RowTotals totals_of_pair(Index i) const;
  [[nodiscard]] RowTotals totals_of(Index i, double* sums) const;
  /// The same blocks for any number of threads: sums up what visit(first, count) gives for each.
  template <typename Visit>
  [[nodiscard]] double sum_over_rows(Visit&& visit) const;

  LikelihoodPointer likelihood_;
  ThreadPool& pool_;
  Incidence<Scalar> rows_;
  double total_weight_ = 0;
  Index active_ = 0;  ///< features that occur
  Index rank_ = 0;
  Index width_ = 0;             ///< the rank, rounded up to whole vectors
  Index stride_ = 0;            ///< parameters per feature, padded
  std::vector<Index> learned_;  ///< places of a feature's parameters that are
  Diagonal diagonal_ = Diagonal::zero;
  bool has_weights_ = true;

  Numbers signs_;  ///< 0 beyond the rank
  double intercept_ = 0;
  double intercept_variance_ = 0;
  Numbers records_;  ///< of one feature more than there are, which is nothing
  Numbers priors_;   ///< precisions, one per parameter of a feature
  double noise_precision_ = 1;

  BigVector<double> residuals_;     ///< y - E[f] of each row
  ImplicitOnes<double> rhos_;       ///< how much it counts, in units of the noise precision
  BigVector<double> bound_points_;  ///< of each row, if the likelihood needs them: see Likelihood::bound
  Numbers totals_;                  ///< deep: per row and factor the sums of m x, v x^2, m v x^3
};

}  // namespace dyad
