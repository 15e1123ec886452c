#pragma once

#include <functional>
#include <span>
#include <vector>

#include <dyad/rows.h>

#include "linalg/matrix.h"
#include "solvers/kalman/filter.h"

namespace dyad {

/// Writes the linear predictor and its variance of each row by a filter with a hierarchical prior. `unknown_groups`
/// appends the groups of the unknown features of a row, which have value 1.
template <typename Scalar>
void predict_with_unknown_features(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows,
                                   const std::function<void(Index row, std::vector<Index>& groups)>& unknown_groups,
                                   std::span<Scalar> predictions, std::span<Scalar> variances);

/// Variance that unknown features (features without training data) add to a prediction of a filter with a fixed prior,
/// which omits them.
///
/// A feature adds u + sum_c g_c a_c to the prediction, where u is its main effect, a its factors, and g the gradient of
/// its interactions with the other features of the row. The parameters (u, a) of an unknown feature are assumed to have
/// the distribution of those of the known features of its group (for example, of its column). The variance that it adds
/// is (1, g)'E[(u, a)(u, a)'](1, g), with the second moments averaged over the posterior of the group, plus terms for
/// the variance of g and for the interactions of unknown features with each other. A group without known features has
/// the second moments of the prior. Parameters refer to features divided by their scale, and an unknown feature is
/// assumed to have a value equal to its scale. Immutable; thread-safe.
class UnknownFeatures {
 public:
  /// `groups`: group of each feature, from 0 to group_count - 1; -1: no group. Does not refer to the filter afterwards.
  template <typename Scalar>
  UnknownFeatures(const KalmanFilter<Scalar>& filter, std::vector<Index> groups, Index group_count);

  /// All features of a side are one group: 0 for the left side (and symmetric models), 1 for the right side. The
  /// moments are averaged over a sample of features, so that the time does not depend on their number.
  template <typename Scalar>
  explicit UnknownFeatures(const KalmanFilter<Scalar>& filter);

  /// Variance added to the prediction of row i by one unknown feature of each group in `missing`, and by the entries of
  /// the row that are unknown to the filter. 0 if there are none.
  template <typename Scalar>
  [[nodiscard]] double variance(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows, Index i,
                                std::span<const Index> missing) const;

 private:
  /// An unknown feature of a row.
  struct Unknown {
    const Matrix<double>* moments;  ///< of its group; points into moments_
    bool is_right;                  ///< bilinear: whether it belongs to the right side
  };

  template <typename Scalar>
  void compute_moments(const KalmanFilter<Scalar>& filter, Index sample_size);
  [[nodiscard]] Index group_of(Index j, const KalmanOptions& options) const {
    if (groups_.empty()) return options.shape.left_dim > 0 && j >= options.shape.left_dim ? 1 : 0;
    return groups_[static_cast<std::size_t>(j)];
  }

  std::vector<Index> groups_;            ///< group of each feature; empty: one group per side
  std::vector<Matrix<double>> moments_;  ///< E[(u, a)(u, a)'] of each group; the last one is that of the prior
  std::vector<bool> is_right_;           ///< per group: whether it belongs to the right side (bilinear)
};

}  // namespace dyad
