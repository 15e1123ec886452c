#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include <dyad/recover.h>

#include "base/thread_pool.h"
#include "solvers/gauss_newton/normal_equations.h"
#include "solvers/kalman/filter.h"

namespace dyad {

/// Iterative solver over cached rows with a sequence of levels. A level is one variational sweep, or a Gauss-Newton fit
/// with one ridge of a decreasing regularization path, which starts from the fit at the previous level.
class MultiPassSolver {
 public:
  virtual ~MultiPassSolver() = default;

  /// Advances to the next level. Calls `after_step`, unless empty, after each of its steps. Returns false if there is
  /// no further level, or after an interruption.
  virtual bool advance(const std::function<void()>& after_step) = 0;

  /// Iterates at the current level until the parameters are constant up to rounding.
  virtual void polish() {}

  [[nodiscard]] virtual std::string level() const = 0;  ///< name of the current level
  [[nodiscard]] virtual double objective() const = 0;   ///< per row; decreases within a level
  [[nodiscard]] virtual SignedFactors<double> parameters() const = 0;
  [[nodiscard]] virtual Posterior<double> result() const = 0;  ///< without variances for Gauss-Newton
  [[nodiscard]] virtual Index passes() const = 0;              ///< number of passes over all rows so far
  /// Whether there are more rows than unknowns and the residuals are of rounding size.
  [[nodiscard]] virtual bool has_exact_fit() const { return false; }
};

/// Options of a MultiPassSolver.
struct MultiPassSolverOptions {
  KalmanOptions kalman;
  Solver solver = Solver::newton;                        ///< newton or variational
  bool exact_steps = false;                              ///< newton: as in NewtonOptions
  int patience = 3;                                      ///< newton: as in NewtonOptions
  Index stride = 1;                                      ///< newton: number of path entries between two levels
  Index first_level = 0;                                 ///< newton: number of levels that are skipped
  Index max_passes = std::numeric_limits<Index>::max();  ///< limit of passes over all rows
  std::function<bool()> interrupted;                     ///< called between steps; true ends the fit
};

/// Whether variational sweeps support the model. It must be symmetric with a diagonal that is not tied, or bilinear
/// with a linear term and at most one non-zero per side and row.
template <typename Scalar>
bool supports_variational_sweeps(const Rows<Scalar>& rows, const ModelShape& shape);

/// Makes a solver that starts from the posterior of one pass. Features are expected to have scale 1. Refers to options,
/// rows and the pool, which the caller keeps alive.
template <typename Scalar>
std::unique_ptr<MultiPassSolver> make_multi_pass_solver(const Rows<Scalar>& rows, const MultiPassSolverOptions& options,
                                                        Posterior<double> start, ThreadPool& pool);

/// Makes a Gauss-Newton solver for rows that are accessible through their normal equations only, for example
/// distributed ones. `are_sparse`: the regularization path starts at a stronger ridge.
std::unique_ptr<MultiPassSolver> make_newton_pass_solver(const std::shared_ptr<const NormalEquations>& equations,
                                                         bool are_sparse, const MultiPassSolverOptions& options,
                                                         const SignedFactors<double>& start);

}  // namespace dyad
