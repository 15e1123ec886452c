#pragma once

#include <cstdint>
#include <vector>

#include "base/archive.h"
#include "solvers/gauss_newton/normal_equations.h"

namespace dyad {

// src/distributed: distributed training. The driver sends requests to all workers, each worker computes sums over its
// rows (RequestHandler), and the driver computes the next request from the total of these sums.

/// Header of a request of the driver to all workers. The body depends on the type; see RequestHandler. The header
/// selects rows by quantiles of their hashes, which are uniform in [0, 1), so that the selection does not depend on the
/// partitioning.
struct Request {
  /// The sums that the workers compute.
  enum class Type {
    survey,             ///< counts and sums of squares of the features, range of the targets
    pass,               ///< increase of the natural parameters by one pass of a filter
    targets,            ///< NormalEquations::targets
    gram,               ///< NormalEquations::gram
    gram_diagonal,      ///< NormalEquations::gram_diagonal
    gradient,           ///< NormalEquations::gradient, and the losses of held-out rows
    curvature_product,  ///< NormalEquations::curvature_product
    precisions,         ///< Laplace precisions at the means of a filter
    anova_sums,         ///< BasisSums of the functions of an ANOVA model
  };
  /// Whether the sums include held-out rows, exclude them, or contain no other rows.
  enum class HeldOutUse { included, excluded, only };

  Type type = Type::survey;
  HeldOutUse held_out_use = HeldOutUse::included;
  double min_quantile = 0;   ///< rows below this quantile are not used
  double max_quantile = 1;   ///< rows at or above this quantile are not used; 1: no limit
  double held_out_from = 1;  ///< rows below this quantile are never held out
  bool has_range = true;     ///< false: the range of the target is removed, because some target lies outside
  bool has_squares = false;  ///< gram and its diagonal: include squared features

  /// Saves or loads the header.
  void archive(Archive& archive);

  /// Whether the row with this hash is held out: one in ten rows at or above `held_out_from`.
  [[nodiscard]] bool is_held_out(std::uint64_t hash) const;
  /// Whether the sums include the row with this hash.
  [[nodiscard]] bool uses_row(std::uint64_t hash) const;
};

/// Saves or loads parameters of this shape.
void archive_parameters(Archive& archive, SignedFactors<double>& parameters, Index dim, Index rank);
/// Saves or loads a vector of the normal equations of this shape.
void archive_parameter_vector(Archive& archive, ParameterVector& t, Index dim, Index rank, Diagonal diagonal);

/// Scale of each feature. Workers divide the features by it. Empty: all scales are 1.
using Scales = std::vector<double>;

}  // namespace dyad
