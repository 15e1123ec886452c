#pragma once

#include <functional>
#include <optional>

#include "base/thread_pool.h"
#include "data/row_cache.h"
#include "solvers/kalman/filter.h"
#include "training/cached_rows/cached_fit.h"
#include "training/cached_rows/fit_status.h"
#include "training/one_pass/feature_scales.h"

namespace dyad {

/// Limits of the buffer and of the work spent on it.
struct BufferedStartOptions {
  double memory = 0;                  ///< maximum size of the buffer in bytes; 0: no buffer
  double max_work = 2e10;             ///< limit of the multiplications of all passes over the buffer
  bool diagnoses = false;             ///< compute diagnosis()
  bool searches_starts = false;       ///< fits with the solvers of measurements; false: Gauss-Newton from the moments
  std::function<bool()> interrupted;  ///< called between steps; true ends the fit
};

/// Buffer of the first rows of a stream, from which Gauss-Newton computes a start for the filters. The buffer is fitted
/// at several sizes, in multiples of the number of unknowns, until a fit is exact or a limit is reached. Does not own
/// the thread pool; the caller keeps it alive.
template <typename Scalar>
class BufferedStart {
 public:
  /// Filter that continues from a fit.
  struct Start {
    KalmanFilter<Scalar> filter;
    Index rows = 0;         ///< number of buffered rows
    bool is_exact = false;  ///< whether all residuals are of rounding size
    bool is_final = false;  ///< whether it is the result of finish(), which fits all rows of the stream
  };

  BufferedStart(BufferedStartOptions options, ThreadPool& pool) : options_(std::move(options)), pool_(pool) {}

  /// Starts to buffer rows if memory and work suffice for a fit of this model. `sparse`: layout of the rows.
  void start(const KalmanOptions& kalman, bool sparse);
  /// Discards the buffer.
  void stop();
  [[nodiscard]] bool is_buffering() const { return buffer_.has_value(); }
  /// Size of the buffer at the next fit.
  [[nodiscard]] Index rows_of_next_fit() const { return rows_for(attempt_); }
  /// Number of rows to append before the next fit, at least 1.
  [[nodiscard]] Index rows_until_next_fit() const;

  /// Appends rows. Returns a start if the buffer has reached the size of the next fit and the fit succeeds.
  std::optional<Start> append(const Rows<Scalar>& rows, const Prior& prior, const FeatureScales& scales);

  /// Fits the buffered rows, with a thorough search for starts if there is one, and discards the buffer. Then one row
  /// more than unknowns suffices. Returns null if there are too few rows, if the fit fails, or without a search if no
  /// rows were appended since the last fit.
  std::optional<Start> finish(const Prior& prior, const FeatureScales& scales);

  /// Diagnosis of the last fit; null if there was none, or without BufferedStartOptions::diagnoses.
  [[nodiscard]] const std::optional<FitDiagnosis>& diagnosis() const { return diagnosis_; }

  /// Number of rows read by all fits, summed over passes.
  [[nodiscard]] Index extra_row_reads() const { return extra_row_reads_; }

 private:
  [[nodiscard]] Index rows_for(std::size_t attempt) const;
  [[nodiscard]] bool can_afford(std::size_t attempt) const;
  [[nodiscard]] double work_per_pass(double rows) const;
  /// Whether the last fit predicts the rows that were added after it, or there are none. A local minimum does not.
  [[nodiscard]] bool predicts_new_rows(const ObservedRows& rows) const;
  std::optional<Start> fit(const Prior& prior, const FeatureScales& scales, StartSearch search);

  BufferedStartOptions options_;
  ThreadPool& pool_;
  KalmanOptions kalman_;
  bool sparse_ = false;
  std::optional<RowCache<Scalar>> buffer_;         ///< null: not buffering
  std::size_t attempt_ = 0;                        ///< index of the next fit in `fit_rows_per_unknown`
  std::optional<SignedFactors<double>> last_fit_;  ///< parameters of the last fit, for features divided by their scales
  Index fitted_rows_ = 0;                          ///< size of the buffer at the last fit
  std::optional<FitDiagnosis> diagnosis_;
  double work_ = 0;  ///< multiplications so far
  Index extra_row_reads_ = 0;
};

/// Gauss-Newton options with the shape, likelihood and seed of the filter.
NewtonOptions newton_options(const KalmanOptions& kalman);

}  // namespace dyad
