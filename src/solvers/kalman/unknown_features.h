#pragma once

#include <span>
#include <vector>

#include <dyad/rows.h>

#include "linalg/matrix.h"
#include "solvers/kalman/filter.h"

namespace dyad {

/// Variance that features without data add to a prediction which leaves them out.
///
/// A feature adds u + sum_c g_c a_c, where u is its own coefficient, a its factors, and g the slope of its interactions
/// with the rest of the row. For a feature without data, (u, a) is taken to be distributed as that of the features of
/// its group: the second moments E[(u, a)(u, a)'] are the mean over the group of the posterior's, and the variance is
/// that of the sum about 0. A group without data has the moments of the prior. Parameters are those for features of
/// scale 1, so that the size of an unknown feature is taken to be its scale.
class UnknownFeatures {
 public:
  /// `groups`: of each feature, from 0 on; -1: none. Does not keep the filter.
  template <typename Scalar>
  UnknownFeatures(const KalmanFilter<Scalar>& filter, std::vector<Index> groups, Index group_count);

  /// All features of a side are one group: 0, or 1 for those of z. Its moments are those of a sample, so that the time
  /// does not grow with the features.
  template <typename Scalar>
  explicit UnknownFeatures(const KalmanFilter<Scalar>& filter);

  /// Of row i, which lacks one feature of each group in `missing`. Its entries that the filter has no data about count
  /// as unknown features of their group, too. 0 if there are neither.
  template <typename Scalar>
  [[nodiscard]] double variance(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows, Index i,
                                std::span<const Index> missing) const;

 private:
  struct Unknown {
    const Small<double>* moments;
    bool right;
  };

  template <typename Scalar>
  void find_moments(const KalmanFilter<Scalar>& filter, Index sample_size);
  [[nodiscard]] Index group_of(Index j, const KalmanOptions& options) const {
    if (groups_.empty()) return options.shape.left_dim > 0 && j >= options.shape.left_dim ? 1 : 0;
    return groups_[static_cast<std::size_t>(j)];
  }

  std::vector<Index> groups_;           ///< of each feature; empty: one for each side
  std::vector<Small<double>> moments_;  ///< of each group: of (u, a); the last one is the prior's
  std::vector<bool> is_right_;          ///< bilinear: whether the group belongs to z
};

}  // namespace dyad
