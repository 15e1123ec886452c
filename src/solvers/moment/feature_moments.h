#pragma once

#include <Eigen/Core>

#include <dyad/rows.h>

#include "base/archive.h"
#include "linalg/matrix.h"

namespace dyad {

/// Running moments of every feature, kept as power sums: they add over rows, threads and machines. Meant for features
/// that are roughly centred and scaled; far from that, power sums lose digits.
class FeatureMoments {
 public:
  explicit FeatureMoments(Index dim) : sums_(Eigen::ArrayX4d::Zero(dim, 4)) {}

  template <typename Scalar>
  void add(const Rows<Scalar>& rows);
  FeatureMoments& operator+=(const FeatureMoments& other);

  void grow(const Growth& growth) { sums_ = growth.grown(sums_); }
  void archive(Archive& archive, Index dim);

  [[nodiscard]] Index dim() const { return sums_.rows(); }
  [[nodiscard]] double weight() const { return weight_; }
  [[nodiscard]] Eigen::ArrayXd mean() const;
  [[nodiscard]] Eigen::ArrayXd variance() const;
  [[nodiscard]] Eigen::ArrayXd skewness() const;  ///< kappa: third central moment of the standardised feature
  [[nodiscard]] Eigen::ArrayXd kurtosis() const;  ///< phi: the fourth; a constant feature has 1, as if two-valued

  /// Whether skewness 0 and kurtosis 3 explain what was seen, up to sampling error and what does no harm.
  [[nodiscard]] bool look_gaussian() const;

 private:
  double weight_ = 0;           ///< of all rows; each counts 1 unless it says otherwise
  double squared_weights_ = 0;  ///< the sum of their squares
  Eigen::ArrayX4d sums_;        ///< of x, x^2, x^3, x^4
};

}  // namespace dyad
