#include "training/cached_rows/residual_structure.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "solvers/gauss_newton/moment_start.h"

namespace dyad {
namespace {

/// Copies with random signs, and the margin by which an eigenvalue must exceed the largest of theirs. The largest
/// eigenvalue of a random matrix varies by a few percent for 100 features.
constexpr int random_copies = 3;
constexpr double significance_margin = 1.4;

}  // namespace

bool ResidualStructure::is_significant() const { return std::abs(eigenvalue) > threshold; }

ResidualStructure find_residual_structure(const ObservedRows& rows, const Vector<double>& residuals,
                                          const ModelShape& shape, std::uint64_t seed, ThreadPool& pool) {
  NewtonOptions options;
  options.shape = shape;
  options.shape.rank = 1;
  options.seed = seed;
  ResidualStructure structure;
  const MomentStart moments = compute_moment_start(rows.with_targets(residuals), options, pool);
  structure.eigenvalue = moments.spectrum[0];
  structure.direction = moments.directions.col(0);
  Random random(seed, start_stream - 3);
  for (int copy = 0; copy < random_copies; ++copy) {
    const Vector<double> flipped = residuals.unaryExpr([&](double r) { return random.bits() >> 63 ? -r : r; });
    const MomentStart null = compute_moment_start(rows.with_targets(flipped), options, pool);
    structure.threshold = std::max(structure.threshold, significance_margin * std::abs(null.spectrum[0]));
  }
  return structure;
}

}  // namespace dyad
