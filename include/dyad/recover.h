#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <dyad/model.h>
#include <dyad/moment.h>
#include <dyad/simulate.h>

/// \file
/// Recovery experiments: a planted model is estimated from a stream of its rows, and the error is measured.

namespace dyad {

/// Options of recover().
struct RecoverOptions {
  PlantedOptions problem;                ///< model and rows
  Solver solver = Solver::automatic;     ///< automatic: kalman with a Gauss-Newton fit to cached rows
  std::optional<Update> update;          ///< of the moment solver; default: one_scan
  Moments moments = Moments::automatic;  ///< of the moment solver
  bool theory = false;                   ///< measure the constants of the proof as well; reads each batch several times
  std::optional<Index> batch;            ///< rows per update; default: 6 x rank x dim, at most `rows`
  std::optional<Index> rows;             ///< limit on distinct rows; default: max(1000 x rank x dim, 60 batches)
  double tolerance = 1e-6;               ///< on |w - w*| + |M - M*|_2
  double memory = 1e9;                   ///< bytes for cached rows; 0: none
  int threads = 0;                       ///< 0: all cores

  /// Returns Solver::moment if `solver` is automatic and an option of the moment solver is set (`update`, `moments`,
  /// `theory` or `batch`), else `solver`.
  [[nodiscard]] Solver resolved_solver() const;
  /// Resolved value of `batch`.
  [[nodiscard]] Index batch_rows() const;
  /// Resolved value of `rows`.
  [[nodiscard]] Index row_budget() const;
  /// newton: increasing numbers of cached rows at which a fit is attempted; only `rows` if it is set.
  [[nodiscard]] std::vector<Index> cached_row_counts() const;
  /// Number of unknowns, as ModelShape::unknowns().
  [[nodiscard]] Index unknowns() const;

  /// Returns the reason if the iteration is unlikely to converge with this batch size, else an empty string.
  [[nodiscard]] std::string warning() const;

  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

/// Bounds of the convergence proof (Lin and Ye 2016, Theorem 1, the noisy theorem and their lemmas) for one batch,
/// computed from the errors before it. With alpha = tan_theta, eps = error_w + error_M, the constants delta and r
/// measured on the batch, rho = 2 sigma_{k+1} / (sigma_k + sigma_{k+1}) and c = 4 sqrt(5) / (sigma_k + sigma_{k+1}):
///
///     tan_theta <= alpha_bound = rho alpha + c (delta eps + r)
///     error_w   <= beta_bound  = delta eps + r
///     error_M   <= gamma_bound = alpha_bound sigma_1 + 2 (delta eps + r)
///
/// The recovery index tan_theta + index_weight (error_w + error_M) is at most index_bound. If every batch has the same
/// constants, it converges to index_floor at the given rate. The bounds are infinite if the assumptions of the lemma do
/// not hold.
struct TheoryPoint {
  double ci_rip = 0;        ///< shifted CI-RIP constant |A'A(D)/(2n) - tr(D) I/2 - D|_2 / |D|_2 for D = M*_k - M
  double delta = 0;         ///< smallest constant for which the CI-RIP theorem and the estimation sequence lemma hold
  double noise = 0;         ///< r: error of the estimated change caused by noise and residual spectrum; 0: none
  double alpha_bound = 0;   ///< on tan_theta
  double beta_bound = 0;    ///< on error_w
  double gamma_bound = 0;   ///< on error_M
  double factor = 0;        ///< b delta with b = 3 + c sigma_1; without noise the bound on the reduction of eps
  double index_weight = 0;  ///< 2 c delta
  double index_bound = 0;   ///< on the recovery index: rate x index before the batch + (1 + 2 b delta) c r
  double rate = 0;          ///< q = max(rho (1 + 2 c delta sigma_1), 1/2 + b delta)
  double index_floor = 0;   ///< (1 + 2 b delta) c r / (1 - q); infinite if q >= 1
  bool is_applicable = false;  ///< alpha <= 2 and 4 sqrt(5) (delta eps + r) <= sigma_k - sigma_{k+1} before the batch

  /// True if the bound does not imply convergence, or with noise convergence to a finite floor.
  [[nodiscard]] bool is_vacuous() const { return noise > 0 ? rate >= 1 : factor >= 1; }
};

/// Errors of the estimate after a number of rows.
struct RecoveryPoint {
  Index rows = 0;                     ///< distinct rows used
  double error_w = 0;                 ///< |w - w*|
  double error_M = 0;                 ///< |M - M*_k|_2, M*_k of rank k closest to M*; without diagonals unless tied
  double error_squares = 0;           ///< free diagonal: norm of the error of the coefficients of the squares
  double error_b = 0;                 ///< |b - b*|
  double error_a = 0;                 ///< phase retrieval: min(|a - a*|, |a + a*|)
  double tan_theta = 0;               ///< tangent of the largest canonical angle between the spans of U and U*
  double residual_rms = 0;            ///< root mean square of y - f(x)
  double seconds = 0;                 ///< since the start
  std::optional<TheoryPoint> theory;  ///< with RecoverOptions::theory

  /// error_w + error_M, to which the tolerance applies.
  [[nodiscard]] double error() const { return error_w + error_M; }
};

/// Result of recover().
struct RecoverySummary {
  Outcome outcome = Outcome::budget;     ///< converged: the tolerance was reached
  std::string outcome_text;              ///< one line, with the reason if the run did not converge
  Index rows = 0;                        ///< distinct rows used
  Index row_reads = 0;                   ///< rows read, counting repeated reads
  double seconds = 0;                    ///< elapsed time
  std::int64_t peak_rss_bytes = 0;       ///< peak resident set of the process
  double noise = 0;                      ///< estimated standard deviation; moment: rms residual of the last batch
  Moments moments = Moments::automatic;  ///< used by the moment solver
  Index cached_rows = 0;                 ///< rows that were read repeatedly; 0: none
  bool fits_exactly = false;             ///< more cached rows than unknowns, and residuals of 0 up to rounding
  /// Diagnosis of the fit to cached rows. Without cached rows: `too_few_rows`, `converged`, or `local_minimum` if the
  /// residuals of new rows have more than half of the variance of the targets.
  FitStatus status = FitStatus::converged;
  Index outliers = 0;  ///< cached rows that the fit excludes
  /// Expected errors of the fit to cached rows by the Laplace approximation: sqrt(E|w - w*|^2), sqrt(E|M - M*|_F^2)
  /// and, for phase retrieval, sqrt(E|a - a*|^2). NaN: not available.
  double standard_error_w = std::numeric_limits<double>::quiet_NaN();
  double standard_error_M = std::numeric_limits<double>::quiet_NaN();  ///< of M
  double standard_error_a = std::numeric_limits<double>::quiet_NaN();  ///< of the signal of phase retrieval
  std::string origin;                                                  ///< one line: how the model was estimated
  RecoveryPoint start;                                                 ///< before the first batch
  std::vector<RecoveryPoint> trace;  ///< moment: per batch; newton: per fit; kalman: per increase of rows by 1/16
  Model<double> model{0, 0};         ///< the estimate

  /// Distinct rows per second.
  [[nodiscard]] double rows_per_second() const { return seconds > 0 ? static_cast<double>(rows) / seconds : 0; }
};

/// Callbacks of recover().
struct RecoveryHooks {
  std::function<void(const RecoveryPoint&)> progress;  ///< called after every batch
  std::function<bool()> interrupted;                   ///< polled between blocks; true ends the run
};

/// Generates the rows of a planted problem as a stream, estimates the model and measures its error.
/// \throws std::invalid_argument for invalid options
RecoverySummary recover(const RecoverOptions& options, const RecoveryHooks& hooks = {});

}  // namespace dyad
