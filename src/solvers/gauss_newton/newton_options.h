#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include <dyad/data.h>
#include <dyad/shape.h>

#include "likelihood/likelihood.h"

namespace dyad {

/// Prior precisions of the parameters, for features of scale 1: ridge |theta|^2 / 2 is added to the sum of all losses,
/// each half a squared residual or a log-loss.
struct Ridge {
  double weights = 0;  ///< of weights and squares
  double factors = 0;
};

struct NewtonOptions {
  ModelShape shape;
  LikelihoodPointer likelihood = make_likelihood(Task::regression);
  Ridge ridge;
  bool preconditioned = true;  ///< by second moments of the features; else by their diagonal
  bool exact_steps = false;    ///< solve the equations of each step to rounding, so that results do not depend on it
  int patience = 3;            ///< number of consecutive steps with little progress after which it has converged
  bool restarts = true;        ///< with other numbers of positive factors, if the fit is not exact
  Index most_products = std::numeric_limits<Index>::max();  ///< maximum number of passes over all rows
  std::uint64_t seed = 1;
  std::function<bool()> interrupted;  ///< called between steps; true ends the fit
};

}  // namespace dyad
