#pragma once

#include <array>
#include <optional>
#include <vector>

#include "linalg/matrix.h"
#include "model/anova_model.h"

namespace dyad {

/// Covariance functions of the coefficients of an axis.
enum class AxisKernel {
  linear,  ///< straight in the values: t t'
  rank,    ///< straight in the knot index: r r'
  smooth,  ///< integrated Wiener process on the knots (cubic smoothing): pinv(D'D), D: second differences
  rough,   ///< Wiener process on the knots: min(r, r')
  white,   ///< independent coefficients; for discrete and categorical axes and missing values
  mixed,   ///< mean of linear, rank and smooth, for pairs
  square,  ///< square of the values, for models without curves
};
inline constexpr std::size_t axis_kernel_count = 7;

/// Factors U of the kernels K = U U' of one axis. The columns of U are ordered by decreasing norm. Each kernel is
/// centered, w'K w = 0 for the mean values w of the basis functions, and scaled to mean variance 1, w'diag(K) = 1.
class AxisKernels {
 public:
  AxisKernels() = default;
  /// `means`: mean values of the basis functions over the rows.
  AxisKernels(const AnovaAxis& axis, const Vector<double>& means);

  /// U, or null if the axis does not have the kernel.
  [[nodiscard]] const std::optional<Matrix<double>>& factor(AxisKernel kernel) const {
    return factors_[static_cast<std::size_t>(kernel)];
  }
  [[nodiscard]] bool has(AxisKernel kernel) const { return factor(kernel).has_value(); }

 private:
  void set_factor(AxisKernel kernel, Matrix<double> factor, const AnovaAxis& axis, const Vector<double>& means);

  std::array<std::optional<Matrix<double>>, axis_kernel_count> factors_;
};

/// Kernel of a block: one axis kernel, or the Kronecker product of two.
struct BlockKernel {
  AxisKernel first = AxisKernel::linear;
  std::optional<AxisKernel> second;
  friend bool operator==(const BlockKernel&, const BlockKernel&) = default;
};

/// Kernels of the function of one column.
std::vector<BlockKernel> main_kernels(const AxisKernels& axis);
/// Kernels of the function of a pair: linear x linear, mixed x mixed, rough x rough, white x white, white x mixed and
/// mixed x white, as far as the axes have them.
std::vector<BlockKernel> pair_kernels(const AxisKernels& first, const AxisKernels& second);
/// Factor of a Kronecker kernel with at most `max_columns` columns, those of largest norm.
Matrix<double> pair_factor(const Matrix<double>& first, const Matrix<double>& second, Index max_columns);

}  // namespace dyad
