#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include <dyad/data.h>
#include <dyad/shape.h>

#include "likelihood/likelihood.h"

namespace dyad {

/// Precisions of the parameters before any data, for features of scale 1: half of ridge |theta|^2 is added to the sum
/// of all losses, each half a squared residual or a log-loss.
struct Ridge {
  double weights = 0;  ///< and squares
  double factors = 0;
};

struct NewtonOptions {
  ModelShape shape;
  LikelihoodPointer likelihood = make_likelihood(Task::regression);
  Ridge ridge;
  bool preconditioned = true;  ///< by what second moments know of the curvature; else by its scales alone
  bool exact_steps = false;    ///< solve the equations of each step to the end, so that rounding has no say in the path
  int patience = 3;            ///< steps that hardly make the loss smaller before there is nothing more to gain
  bool restarts = true;        ///< with other numbers of positive factors, where the fit is not exact
  Index most_products = std::numeric_limits<Index>::max();  ///< looks at all rows, in all
  std::uint64_t seed = 1;
  std::function<bool()> interrupted;  ///< asked between steps; true ends the fit where it is
};

}  // namespace dyad
