#pragma once

#include <functional>
#include <optional>

#include "base/thread_pool.h"
#include "data/row_cache.h"
#include "solvers/gauss_newton/gauss_newton.h"
#include "solvers/kalman/filter.h"
#include "training/one_pass/feature_scales.h"

namespace dyad {

/// What rows may be kept at the start of a stream, and how hard they may be worked on.
struct KeepOptions {
  double memory = 0;           ///< bytes
  double most_work = 2e10;     ///< numbers that all looks at the rows together may touch
  bool sign_restarts = false;  ///< solve from other numbers of positive factors, too
  std::function<bool()> interrupted;
};

/// The first rows of a stream, kept until there are enough of them to be solved by Gauss-Newton; solved again when
/// there are more, unless the fit is exact.
template <typename Scalar>
class BufferedStart {
 public:
  /// A filter that starts from the fit.
  struct Start {
    KalmanFilter<Scalar> filter;
    Index rows = 0;
    bool exact = false;
  };

  BufferedStart(KeepOptions options, ThreadPool& pool) : options_(std::move(options)), pool_(pool) {}

  /// Begins to keep rows like these, if memory and work allow it for such a model.
  void begin(const KalmanOptions& kalman, bool sparse);
  void stop();
  [[nodiscard]] bool is_keeping() const { return kept_.has_value(); }
  [[nodiscard]] Index rows_to_first_fit() const { return rows_for(attempt_); }
  /// Rows that are still missing for the next fit.
  [[nodiscard]] Index rows_missing() const;

  /// Keeps rows, and solves them where there are enough by now.
  std::optional<Start> keep(const Rows<Scalar>& rows, const Prior& prior, const FeatureScales& scales);

  /// Solves what is there, if it has not been, and stops.
  std::optional<Start> finish(const Prior& prior, const FeatureScales& scales);

  [[nodiscard]] Index extra_row_reads() const { return extra_row_reads_; }

 private:
  [[nodiscard]] Index rows_for(std::size_t attempt) const;
  [[nodiscard]] bool can_afford(std::size_t attempt) const;
  [[nodiscard]] double work_of_look(double rows) const;
  std::optional<Start> solve(const Prior& prior, const FeatureScales& scales);

  KeepOptions options_;
  ThreadPool& pool_;
  KalmanOptions kalman_;
  bool sparse_ = false;
  std::optional<RowCache<Scalar>> kept_;
  std::size_t attempt_ = 0;
  std::optional<SignedFactors<double>> last_fit_;  ///< for features of scale 1
  double work_ = 0;
  Index extra_row_reads_ = 0;
};

/// The same shape for Gauss-Newton.
NewtonOptions newton_options(const KalmanOptions& kalman);

}  // namespace dyad
