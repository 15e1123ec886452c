#include "solvers/moment/feature_moments.h"

namespace dyad {

template <typename Scalar>
void FeatureMoments::add(const Rows<Scalar>& rows) {
  const Index dim = sums_.rows();
  for (Index i = 0; i < rows.count(); ++i) {
    const auto weight = static_cast<double>(rows.weight(i));
    weight_ += weight;
    squared_weights_ += weight * weight;
    if (rows.is_sparse()) {
      rows.for_each_entry(i, [&](Index j, Scalar entry) {
        const auto x = static_cast<double>(entry);
        sums_.row(j) += weight * Eigen::Array4d(x, x * x, x * x * x, x * x * x * x).transpose();
      });
      continue;
    }
    const auto x = Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>>(rows.row(i), dim).template cast<double>();
    sums_.col(0) += weight * x;
    sums_.col(1) += weight * x.square();
    sums_.col(2) += weight * x.cube();
    sums_.col(3) += weight * x.square().square();
  }
}

FeatureMoments& FeatureMoments::operator+=(const FeatureMoments& other) {
  weight_ += other.weight_;
  squared_weights_ += other.squared_weights_;
  sums_ += other.sums_;
  return *this;
}

void FeatureMoments::archive(Archive& archive, Index dim) {
  archive.number("weight", weight_);
  archive.number("squared_weights", squared_weights_);
  archive.matrix("sums", sums_, dim, 4);
}

Eigen::ArrayXd FeatureMoments::mean() const { return sums_.col(0) / weight_; }

Eigen::ArrayXd FeatureMoments::variance() const { return (sums_.col(1) / weight_ - mean().square()).max(0); }

Eigen::ArrayXd FeatureMoments::skewness() const {
  const double n = weight_;
  const Eigen::ArrayXd m = mean();
  const Eigen::ArrayXd v = variance();
  const Eigen::ArrayXd third = sums_.col(2) / n - 3 * m * sums_.col(1) / n + 2 * m.cube();
  return (v > 0).select(third / (v * v.sqrt()), 0);
}

Eigen::ArrayXd FeatureMoments::kurtosis() const {
  const double n = weight_;
  const Eigen::ArrayXd m = mean();
  const Eigen::ArrayXd v = variance();
  const Eigen::ArrayXd fourth =
      sums_.col(3) / n - 4 * m * sums_.col(2) / n + 6 * m.square() * sums_.col(1) / n - 3 * m.square().square();
  return (v > 0).select(fourth / v.square(), 1);
}

bool FeatureMoments::is_gaussian() const {
  // Multiple of the sampling variance that is accepted: the square of two standard errors. The sampling variances for
  // Gaussian features are 6/n (skewness) and 24/n (kurtosis).
  constexpr double sampling_variance_factor = 4;
  // Squared deviations that are accepted for any n: a skewness of 0.05 and an excess kurtosis of 0.1. Sensitivity:
  // docs/constants.md.
  constexpr double skewness_tolerance = 0.0025;
  constexpr double kurtosis_tolerance = 0.01;             // sensitivity: docs/constants.md
  const double n = weight_ * weight_ / squared_weights_;  // effective number of rows (Kish)
  return skewness().square().mean() < sampling_variance_factor * 6 / n + skewness_tolerance &&
         (kurtosis() - 3).square().mean() < sampling_variance_factor * 24 / n + kurtosis_tolerance;
}

template void FeatureMoments::add(const Rows<float>&);
template void FeatureMoments::add(const Rows<double>&);

}  // namespace dyad
