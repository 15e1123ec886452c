#pragma once

#include <span>

#include "solvers/anova/terms.h"

namespace dyad {

/// Gain in log evidence of a candidate pair, fitted to the residuals of the current model.
struct PairGain {
  double nats = 0;
  double theta = 0;  ///< prior variance that maximizes the gain
};

/// Residuals of the current model, weighted, and the noise variance.
struct ScreenRows {
  std::span<const double> residuals;  ///< weighted residuals, centered
  std::span<const double> weights;    ///< empty: all 1
  double noise_variance = 1;
};

/// Approximate gain, as if the two columns were independent, in O(rows + knots^3) operations: the Gram matrix of the
/// products is then the Kronecker product of those of the axes. Ranks candidates for compute_gain().
class AxisSpectrum {
 public:
  AxisSpectrum(const FittedAxis& axis, std::span<const double> weights);

  static PairGain approximate_gain(const AxisSpectrum& first, const AxisSpectrum& second, const BlockRows& pair,
                                   const ScreenRows& rows);

 private:
  struct Rotated {
    Matrix<double> factor;  ///< U W with (U W)' G (U W) = diag(values)
    Vector<double> values;
  };
  std::array<std::optional<Rotated>, axis_kernel_count> kernels_;
};

/// Gain of a pair: the maximum over its kernels and their variance theta of
/// 1/2 [theta a'(I + theta S)^-1 a - log det(I + theta S)], with a = U'Phi'r / s2 and S = U'Phi'W Phi U / s2.
PairGain compute_gain(const Term& pair, const ScreenRows& rows);

}  // namespace dyad
