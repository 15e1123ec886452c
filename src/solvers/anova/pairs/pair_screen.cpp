#include "solvers/anova/pairs/pair_screen.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "linalg/decompositions.h"
#include "linalg/multiply.h"

namespace dyad {
namespace {

/// Variances theta at which gains are computed, evenly spaced on the logarithmic scale between 1e-6 and 3, where 1 is
/// the variance of the target. The gain is smooth in log theta.
constexpr Index theta_count = 20;
double theta_at(Index i) { return 1e-6 * std::pow(3e6, static_cast<double>(i) / static_cast<double>(theta_count - 1)); }

/// Largest number of columns of the factor of a candidate. Columns are ordered by decreasing prior variance.
constexpr Index max_screen_columns = 200;

}  // namespace

AxisSpectrum::AxisSpectrum(const FittedAxis& axis, std::span<const double> weights) {
  const BlockRows rows{&axis.hats, nullptr, axis.axis.size(), 1};
  const RowMajorMatrix<double> gram = cross_gram(rows, rows, weights);
  for (const AxisKernel kernel : {AxisKernel::mixed, AxisKernel::rough, AxisKernel::white}) {
    if (!axis.kernels.has(kernel)) continue;
    const Matrix<double>& U = *axis.kernels.factor(kernel);
    const SymmetricEigen<double> eigen = symmetric_eigen<double>(U.transpose() * gram * U);
    kernels_[static_cast<std::size_t>(kernel)] = Rotated{U * eigen.vectors, eigen.values.cwiseMax(0)};
  }
}

PairGain AxisSpectrum::approximate_gain(const AxisSpectrum& first, const AxisSpectrum& second, const BlockRows& pair,
                                        const ScreenRows& rows) {
  const double s2 = rows.noise_variance;
  const double count = rows.weights.empty() ? static_cast<double>(rows.residuals.size())
                                            : std::accumulate(rows.weights.begin(), rows.weights.end(), 0.0);
  const Vector<double> moments = basis_moments(pair, rows.residuals);
  const auto R = Eigen::Map<const RowMajorMatrix<double>>(moments.data(), pair.first_size, pair.second_size);
  PairGain best;
  for (const auto& [a, b] : {std::pair{AxisKernel::mixed, AxisKernel::mixed},
                             {AxisKernel::rough, AxisKernel::rough},
                             {AxisKernel::white, AxisKernel::white},
                             {AxisKernel::white, AxisKernel::mixed},
                             {AxisKernel::mixed, AxisKernel::white}}) {
    const auto& U = first.kernels_[static_cast<std::size_t>(a)];
    const auto& V = second.kernels_[static_cast<std::size_t>(b)];
    if (!U || !V) continue;
    const Matrix<double> A = U->factor.transpose() * R * V->factor / s2;
    const Matrix<double> S = U->values * V->values.transpose() / (count * s2);
    for (Index i = 0; i < theta_count; ++i) {
      const double theta = theta_at(i);
      double quadratic = 0;
      double log_det = 0;
      for (Index c = 0; c < A.cols(); ++c) {
        double product = 1;  // of up to 64 factors; its logarithm replaces one logarithm per factor
        for (Index r = 0; r < A.rows(); ++r) {
          const double factor = 1 + theta * S(r, c);
          quadratic += theta * A(r, c) * A(r, c) / factor;
          product *= factor;
          if (product > 1e100) {
            log_det += std::log(product);
            product = 1;
          }
        }
        log_det += std::log(product);
      }
      const double gain = 0.5 * (quadratic - log_det);
      if (gain > best.nats) best = {gain, theta};
    }
  }
  return best;
}

PairGain compute_gain(const Term& pair, const ScreenRows& rows) {
  const double s2 = rows.noise_variance;
  const RowMajorMatrix<double> gram = cross_gram(pair.rows(), pair.rows(), rows.weights);
  const Vector<double> moments = basis_moments(pair.rows(), rows.residuals);
  PairGain best;
  const std::vector<BlockKernel> kernels = pair.default_kernels();
  for (const BlockKernel& kernel : kernels) {
    if (kernel == BlockKernel{AxisKernel::linear, AxisKernel::linear} && kernels.size() > 1) continue;
    const Matrix<double> U = pair.kernel_factor(kernel, max_screen_columns);
    const SymmetricTridiagonal tridiagonal =
        tridiagonalize(multiply_transposed(U, multiply(gram, U)) / s2, U.transpose() * moments / s2);
    for (Index i = 0; i < theta_count; ++i) {
      const double gain = tridiagonal.log_evidence_gain(theta_at(i));
      if (gain > best.nats) best = {gain, theta_at(i)};
    }
  }
  return best;
}

}  // namespace dyad
