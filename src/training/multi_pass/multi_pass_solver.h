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

/// Iterative solver over cached rows with a sequence of levels: variational sweeps, or fits with a decreasing ridge.
class MultiPassSolver {
 public:
  virtual ~MultiPassSolver() = default;

  /// Advances to the next level, and calls `after_step` after each of its steps. Returns false if there is none, or
  /// after an interruption.
  virtual bool advance(const std::function<void()>& after_step) = 0;

  /// Iterates at the present level until the parameters are constant up to rounding.
  virtual void polish() {}

  [[nodiscard]] virtual std::string level() const = 0;  ///< name of the level
  [[nodiscard]] virtual double objective() const = 0;   ///< per row; decreases
  [[nodiscard]] virtual SignedFactors<double> parameters() const = 0;
  [[nodiscard]] virtual Posterior<double> result() const = 0;
  [[nodiscard]] virtual Index passes() const = 0;  ///< passes over all rows
  /// Whether there are more rows than unknowns, and the residuals are of rounding size.
  [[nodiscard]] virtual bool is_exact() const { return false; }
};

struct MultiPassSolverOptions {
  KalmanOptions kalman;
  Solver solver = Solver::newton;                        ///< newton or variational
  bool exact_steps = false;                              ///< newton: as in NewtonOptions
  int patience = 3;                                      ///< newton: as in NewtonOptions
  Index stride = 1;                                      ///< newton: step in the regularization path
  Index first_level = 0;                                 ///< newton: number of levels to skip
  Index max_passes = std::numeric_limits<Index>::max();  ///< maximum number of passes over all rows
  std::function<bool()> interrupted;
};

/// Whether variational sweeps support this model: a symmetric one whose diagonal is not tied, or a bilinear one with at
/// most one feature per side and row.
template <typename Scalar>
bool can_sweep(const Rows<Scalar>& rows, const ModelShape& shape);

/// A solver that starts from the posterior of one pass, for features of scale 1. Refers to options, rows and the pool,
/// which the caller keeps alive.
template <typename Scalar>
std::unique_ptr<MultiPassSolver> make_multi_pass_solver(const Rows<Scalar>& rows, const MultiPassSolverOptions& options,
                                                        Posterior<double> start, ThreadPool& pool);

/// Gauss-Newton for rows that are stored anywhere.
std::unique_ptr<MultiPassSolver> make_newton_pass_solver(const std::shared_ptr<const NormalEquations>& equations,
                                                         bool are_sparse, const MultiPassSolverOptions& options,
                                                         const SignedFactors<double>& start);

}  // namespace dyad
