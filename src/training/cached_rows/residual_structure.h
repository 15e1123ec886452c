#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"

namespace dyad {

/// Leading eigenpair (bilinear: singular triplet) of the moment matrix sum_i r_i x_i x_i' / (2n) of residuals r. A
/// significant one is a direction of M that a fit lacks.
struct ResidualStructure {
  double eigenvalue = 0;
  Vector<double> direction;  ///< unit norm on each side
  double threshold = 0;      ///< size of eigenvalues of residuals that do not depend on the features

  [[nodiscard]] bool is_significant() const;
};

/// Computes the structure of residuals. The threshold comes from copies of the residuals with random signs, so that it
/// holds for any distribution of the features.
ResidualStructure find_residual_structure(const ObservedRows& rows, const Vector<double>& residuals,
                                          const ModelShape& shape, std::uint64_t seed, ThreadPool& pool);

}  // namespace dyad
