#pragma once

#include <Eigen/Core>

#include <dyad/rows.h>

#include "base/archive.h"
#include "linalg/matrix.h"

namespace dyad {

/// Weighted power sums of each feature up to the fourth power, and the moments computed from them. The sums are
/// additive over rows, threads and machines. Accuracy: central moments lose digits to cancellation if |mean| is much
/// larger than the standard deviation. Not thread-safe.
class FeatureMoments {
 public:
  explicit FeatureMoments(Index dim) : sums_(Eigen::ArrayX4d::Zero(dim, 4)) {}

  template <typename Scalar>
  void add(const Rows<Scalar>& rows);
  FeatureMoments& operator+=(const FeatureMoments& other);

  void grow(const FeatureGrowth& growth) { sums_ = growth.insert_zero_rows(sums_); }
  void archive(Archive& archive, Index dim);

  [[nodiscard]] Index dim() const { return sums_.rows(); }
  [[nodiscard]] double weight() const { return weight_; }
  [[nodiscard]] Eigen::ArrayXd mean() const;
  [[nodiscard]] Eigen::ArrayXd variance() const;
  /// kappa: third moment of each standardized feature; constant feature: 0.
  [[nodiscard]] Eigen::ArrayXd skewness() const;
  /// phi: fourth moment of each standardized feature; constant feature: 1.
  [[nodiscard]] Eigen::ArrayXd kurtosis() const;

  /// Whether skewness and excess kurtosis, as root mean squares over the features, are 0 up to sampling error and a
  /// tolerance.
  [[nodiscard]] bool is_gaussian() const;

 private:
  double weight_ = 0;           ///< sum of the row weights
  double squared_weights_ = 0;  ///< sum of the squared row weights
  Eigen::ArrayX4d sums_;        ///< columns: weighted sums of x, x^2, x^3, x^4
};

}  // namespace dyad
