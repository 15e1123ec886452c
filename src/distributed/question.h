#pragma once

#include <cstdint>
#include <vector>

#include "base/archive.h"
#include "solvers/gauss_newton/normal_equations.h"

namespace dyad {

/// Head of a request of the driver to all workers. The body depends on the kind; see WorkerRequest.
struct Question {
  enum class About {
    survey,             ///< counts and squares of features, range of the targets
    pass,               ///< natural parameters that one pass of a filter adds
    targets,            ///< the functions of NormalEquations
    products,           ///<
    diagonal,           ///<
    gradient,           ///< with the losses of held-out rows
    curvature_product,  ///<
    precisions,         ///< Laplace precisions around a fit
  };
  /// Whether held-out rows are used like all others, not at all, or alone.
  enum class HeldOut { counts, is_left_out, counts_alone };

  About about = About::survey;
  HeldOut held_out = HeldOut::counts;
  double from = 0;        ///< first quantile of the row hashes that are used
  double to = 1;          ///< end of these quantiles
  double held_from = 1;   ///< rows below this quantile are never held out
  bool has_range = true;  ///< false: some target is outside of the range of the model
  bool squares = false;   ///< products and diagonal: include squared features

  void archive(Archive& archive);

  [[nodiscard]] bool is_held_out(std::uint64_t hash) const;
  [[nodiscard]] bool counts(std::uint64_t hash) const;
};

/// Save or load parameters, and a vector of the normal equations, of this shape.
void archive_parameters(Archive& archive, SignedFactors<double>& parameters, Index dim, Index rank);
void archive_direction(Archive& archive, ParameterVector& t, Index dim, Index rank, Diagonal diagonal);

/// Features are divided by their scales. Empty: all scales are 1.
using Scales = std::vector<double>;

}  // namespace dyad
