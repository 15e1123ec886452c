#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dyad/model.h>
#include <dyad/moment.h>
#include <dyad/planted.h>

namespace dyad {

/// Who learns.
enum class Solver {
  automatic,    ///< by the data and the memory that it may use
  moment,       ///< the paper: batches, each seen once
  kalman,       ///< row by row, nothing kept
  newton,       ///< Gauss-Newton on rows that are kept
  variational,  ///< rows that are kept, sweep after sweep; sparse data in train
};
enum class Update { one_scan, paper };

struct RecoverOptions {
  PlantedOptions problem;
  Solver solver = Solver::automatic;
  std::optional<Update> update;  ///< of the moment solver; one-scan unless given
  Moments moments = Moments::automatic;
  bool theory = false;         ///< measure the proof's constants too, which reads every batch several times more
  std::optional<Index> batch;  ///< rows in one update; 6 x rank x dim unless given
  std::optional<Index> rows;   ///< distinct rows that may be used; 1000 x rank x dim or 60 batches unless given
  double tolerance = 1e-6;     ///< on |w - w*| + |M - M*|_2
  double memory = 1e9;         ///< bytes for rows that are kept; 0: none
  int threads = 0;             ///< 0: all cores

  /// What `automatic` stands for: the moment solver where something is asked that only it has.
  [[nodiscard]] Solver chosen_solver() const;
  [[nodiscard]] Index batch_rows() const;
  [[nodiscard]] Index row_budget() const;
  /// Newton: rows kept at each attempt, `rows` alone where that is given.
  [[nodiscard]] std::vector<Index> kept_sizes() const;
  /// Of M: kd - k(k-1)/2, or k(d1 + d2 - k); and w, b and the squares where they are learned.
  [[nodiscard]] Index unknowns() const;

  /// Why a batch of this size is unlikely to converge, or nothing.
  [[nodiscard]] std::string warning() const;

  void validate() const;
};

/// The proof's recursion for one batch, from what was measured before it. With eps = error_w + error_M and the constant
/// delta measured on the batch: tan_theta <= 4 sqrt(5) delta eps / sigma_k, error_w <= delta eps, and
/// error_M <= (that bound on tan_theta) sigma_1 + 2 delta eps. Where the lemma does not apply, the bounds are infinite.
struct TheoryPoint {
  double ci_rip = 0;       ///< |A'A(D)/(2n) - tr(D) I/2 - D|_2 / |D|_2 for D = M* - M: the shifted CI-RIP constant
  double delta = 0;        ///< the smallest with which that theorem and the estimation sequence lemma hold
  double alpha_bound = 0;  ///< on tan_theta
  double beta_bound = 0;   ///< on error_w
  double gamma_bound = 0;  ///< on error_M
  double factor = 0;       ///< (4 sqrt(5) sigma_1/sigma_k + 3) delta, on eps
  bool applies = false;    ///< alpha <= 2 and delta eps <= sigma_k / (4 sqrt(5)) before the batch

  /// The proof says nothing about the rate.
  [[nodiscard]] bool vacuous() const { return factor >= 1; }
};

/// How far from the planted answer, after so many rows.
struct RecoveryPoint {
  Index rows = 0;
  double error_w = 0;
  double error_M = 0;  ///< spectral norm, against the best rank-k part of M*; off the diagonal where it is not tied
  double error_squares = 0;  ///< free diagonal: on the weights of the squares
  double error_b = 0;
  double error_a = 0;    ///< phase retrieval: |a - a*|, the smaller over the sign
  double tan_theta = 0;  ///< tangent of the largest canonical angle between the spans of U and U*
  double residual_rms = 0;
  double seconds = 0;
  std::optional<TheoryPoint> theory;

  [[nodiscard]] double error() const { return error_w + error_M; }
};

enum class Outcome { converged, budget, diverged, interrupted };

struct RecoverySummary {
  Outcome outcome = Outcome::budget;
  std::string outcome_text;  ///< one line for people, with the reason where it did not converge
  Index rows = 0;            ///< distinct rows used
  Index row_reads = 0;       ///< rows touched, each look counted
  double seconds = 0;
  std::int64_t peak_rss_bytes = 0;
  double noise = 0;  ///< estimated standard deviation; moments: of the residual on the last batch (that was finite)
  Moments moments = Moments::automatic;  ///< what the moment solver used
  Index cached_rows = 0;                 ///< that were solved again and again; 0: none
  bool fits_exactly = false;             ///< the cached rows, and they are more than the unknowns
  std::string origin;                    ///< one line: where the model comes from
  RecoveryPoint start;                   ///< before the first batch
  std::vector<RecoveryPoint> trace;      ///< one point per batch, or at row counts that grow by a sixteenth
  Model<double> model{0, 0};

  [[nodiscard]] double rows_per_second() const { return seconds > 0 ? static_cast<double>(rows) / seconds : 0; }
};

struct RecoveryHooks {
  std::function<void(const RecoveryPoint&)> progress;  ///< after every batch
  std::function<bool()> interrupted;                   ///< asked between blocks; true ends the run
};

/// Makes the planted problem as a stream and learns it.
RecoverySummary recover(const RecoverOptions& options, const RecoveryHooks& hooks = {});

}  // namespace dyad
