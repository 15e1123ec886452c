#pragma once

#include <cstdint>
#include <functional>

#include <dyad/shape.h>

namespace dyad {

// The folder solvers/irls contains iteratively reweighted least squares for the rank of M.

/// An iteration that reduces eps by less than this factor makes no progress (measured recipe of log-det IRLS: at 1.2
/// rows per unknown 20 of 20 fits succeed at condition numbers 1, 5 and 100).
inline constexpr double irls_progress_ratio = 0.97;
/// Consecutive iterations without progress after which a candidate is returned (same recipe).
inline constexpr int irls_patience_iterations = 15;

/// Options of `LogDetIrls` and `MatrixFreeIrls`.
struct IrlsOptions {
  ModelShape shape;
  std::uint64_t seed = 1;             ///< of random starts and restarts
  std::function<bool()> interrupted;  ///< called between iterations; true ends the iteration. Empty: no interruption
};

}  // namespace dyad
