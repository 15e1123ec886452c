#pragma once

#include <cstdint>
#include <functional>

#include <Eigen/Cholesky>

#include "base/random.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"

namespace dyad {

// The folder solvers/reflections contains relaxed reflections for measurements of a semidefinite M.

/// Options of `Reflections`.
struct ReflectionOptions {
  ModelShape shape;                   ///< measurements, symmetric
  double sign = 1;                    ///< of all eigenvalues of M; targets of the other sign count as 0
  Index starts = 1;                   ///< iterations that run side by side: one spectral start, the others random
  std::uint64_t seed = 1;             ///< of random vectors
  std::function<bool()> interrupted;  ///< called between iterations; true ends the iteration. Empty: no interruption
};

/// Recovers a positive semidefinite M = A A' of rank k from measurements y = |A'x|^2; phase retrieval is k = 1. X A
/// lies in the intersection of two sets of n x k matrices: the column space of X, and the matrices whose row i has the
/// norm sqrt(y_i). Relaxed-reflect-reflect iterations (Elser 2018) search for it with the projections P_X and P_y,
///
///     u += relaxation (P_X(2 P_y u - u) - P_y u),
///
/// from a spectral start with the optimal preprocessing function of Mondelli and Montanari (2019), and from random
/// ones. One iteration takes 2 n d k + d^2 k multiplications per start, or n^2 k with a stored projection, for n <= 2
/// d. The number of iterations to convergence is heavy-tailed near the information limit: 350 to 150,000 for k = 1 and
/// n = 1.5 d. Products with the columns of several starts at once are faster per start. Rows of weight 0 are excluded;
/// other weights have no effect. Copies the rows. Not thread-safe.
class Reflections {
 public:
  Reflections(const ObservedRows& rows, ReflectionOptions options);

  /// Whether the model is symmetric with a tied diagonal and without linear terms, and the copy of the rows is small
  /// enough.
  static bool can_solve(const ObservedRows& rows, const ModelShape& shape);

  /// Iterates at most `iterations` times, until the distance of the sets is of relative size 1e-6. Later calls
  /// continue.
  void run(Index iterations);

  [[nodiscard]] bool has_converged() const { return has_converged_; }
  /// A with the smallest distance of the sets since the last call of run().
  [[nodiscard]] SignedFactors<double> candidate() const;
  [[nodiscard]] Index iterations() const { return iterations_; }
  [[nodiscard]] Index starts() const { return options_.starts; }

 private:
  [[nodiscard]] RowMajorMatrix<double> compute_spectral_start(const Vector<double>& targets, Random& random) const;
  /// Projection P_y of the columns of one start.
  void project_on_amplitudes(Index start, RowMajorMatrix<double>& out) const;
  /// out = X Z.
  void multiply(const RowMajorMatrix<double>& Z, RowMajorMatrix<double>& out) const;
  /// Z = argmin |X Z - u|.
  void solve_least_squares(const RowMajorMatrix<double>& u, RowMajorMatrix<double>& Z) const;
  /// out = P_X u.
  void project_on_columns(const RowMajorMatrix<double>& u, RowMajorMatrix<double>& Z,
                          RowMajorMatrix<double>& out) const;

  ReflectionOptions options_;
  RowMajorMatrix<double> X_;
  Eigen::LLT<Matrix<double>> gram_;   ///< of X'X
  Vector<double> amplitudes_;         ///< sqrt(sign y)
  RowMajorMatrix<double> u_;          ///< n x k per start
  RowMajorMatrix<double> projector_;  ///< P_X, n x n; empty if products with X and X' take fewer operations
  RowMajorMatrix<double> best_;       ///< reflected amplitudes 2 P_y u - u of the smallest distance, n x k
  Index iterations_ = 0;
  bool has_converged_ = false;
};

}  // namespace dyad
