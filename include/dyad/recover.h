#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dyad/model.h>

namespace dyad {

enum class Kind {
  gfm,      ///< y = b + w'x + x'Mx
  sensing,  ///< w = 0: symmetric rank-one matrix sensing
  phase,    ///< w = 0, M = aa': phase retrieval, a up to its sign
};
enum class Signs { mixed, positive };
enum class Solver { moment };
enum class Update { one_scan, paper };

/// A problem with a known answer: |w*| = 1, |M*|_2 = 1, eigenvalues of M* evenly spaced down to 1/condition, rows of
/// independent standard Gaussian features.
struct PlantedOptions {
  Kind kind = Kind::gfm;
  Index dim = 0;
  Index rank = 8;
  double condition = 1;
  Signs signs = Signs::mixed;       ///< mixed: alternating
  std::optional<double> intercept;  ///< b*; without it none is planted and none is learned
  double noise = 0;                 ///< standard deviation of what is added to each target
  double residual = 0;              ///< size of all the other eigenvalues of M*
  std::uint64_t seed = 1;

  void validate() const;
};

struct RecoverOptions {
  PlantedOptions problem;
  Solver solver = Solver::moment;
  Update update = Update::one_scan;
  std::optional<Index> batch;  ///< rows in one update; 6 x rank x dim unless given
  std::optional<Index> rows;   ///< distinct rows that may be used; 1000 x rank x dim unless given
  double tolerance = 1e-6;     ///< on |w - w*| + |M - M*|_2
  int threads = 0;             ///< 0: all cores

  [[nodiscard]] Index batch_rows() const;
  [[nodiscard]] Index row_budget() const;
  [[nodiscard]] Index unknowns() const;  ///< kd - k(k-1)/2 for M, and w and b where they are learned

  /// Why a batch of this size is unlikely to converge, or nothing.
  [[nodiscard]] std::string warning() const;

  void validate() const;
};

/// How far from the planted answer, after so many rows.
struct RecoveryPoint {
  Index rows = 0;
  double error_w = 0;
  double error_M = 0;  ///< spectral norm, against the best rank-k part of M*
  double error_b = 0;
  double error_a = 0;    ///< phase retrieval: |a - a*|, the smaller over the sign
  double tan_theta = 0;  ///< tangent of the largest canonical angle between the spans of U and U*
  double residual_rms = 0;
  double seconds = 0;

  [[nodiscard]] double error() const { return error_w + error_M; }
};

enum class Outcome { converged, budget, diverged, interrupted };

struct RecoverySummary {
  Outcome outcome = Outcome::budget;
  std::string verdict;  ///< one line for people, with the reason where it did not converge
  Index rows = 0;       ///< distinct rows used
  Index row_reads = 0;  ///< rows touched, each look counted
  double seconds = 0;
  std::int64_t peak_rss_bytes = 0;
  double noise = 0;  ///< estimated: the residual's root mean square on the last batch, before learning from it
  std::vector<RecoveryPoint> trace;  ///< one point per batch
  Model<double> model{0, 0};

  [[nodiscard]] double rows_per_second() const { return seconds > 0 ? static_cast<double>(rows) / seconds : 0; }
};

struct RecoveryHooks {
  std::function<void(const RecoveryPoint&)> progress;  ///< after every batch
  std::function<bool()> interrupted;                   ///< asked between blocks; true ends the run
};

/// Makes the planted problem as a stream, never stored, and learns it with the moment solver.
RecoverySummary recover(const RecoverOptions& options, const RecoveryHooks& hooks = {});

}  // namespace dyad
