#pragma once

#include <cstdint>
#include <functional>

#include <dyad/shape.h>

namespace dyad {

// The folder solvers/irls contains iteratively reweighted least squares for the rank of M.

/// Options of `LogDetIrls` and `MatrixFreeIrls`.
struct IrlsOptions {
  ModelShape shape;
  std::uint64_t seed = 1;             ///< of random starts and restarts
  std::function<bool()> interrupted;  ///< called between iterations; true ends the iteration. Empty: no interruption
};

}  // namespace dyad
