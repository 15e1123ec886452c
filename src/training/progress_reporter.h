#pragma once

#include <chrono>
#include <limits>
#include <utility>

#include <dyad/train.h>

#include "base/peak_memory.h"
#include "inference/metrics.h"
#include "training/order_check.h"

namespace dyad {

/// Collects the progressive losses of the first pass (each row is predicted before it is learned) and reports them
/// through TrainHooks: `progress` at 1, 2, 4, 8, ... rows, so that the number of reports grows with the logarithm of
/// the number of rows, and `status` between them. Does not own the hooks; the caller keeps them alive. Not thread-safe.
class ProgressReporter {
 public:
  ProgressReporter(Task task, const TrainHooks& hooks)
      : hooks_(hooks), all_(task), window_(task), last_window_(task), order_(task), task_(task) {}

  /// Adds a row. `rate`: rows per second since the start.
  void add(double target, double prediction, double weight, double rate) {
    all_.add(target, prediction, weight);
    window_.add(target, prediction, weight);
    order_.add(target, weight);
    ++rows_;
    if (rows_ == next_report_) report_progress(rate);
  }

  /// Whether rows are predicted before they are learned. If false, reports contain no losses.
  void set_predicted(bool is_predicted) { is_predicted_ = is_predicted; }
  [[nodiscard]] bool is_predicted() const { return is_predicted_; }

  /// Calls TrainHooks::status unless the last call is too recent. Called between blocks.
  void report_status(double rate) {
    // TrainHooks::status is called at most ten times a second.
    constexpr std::chrono::milliseconds min_status_interval{100};
    if (!hooks_.status || std::chrono::steady_clock::now() < next_status_) return;
    hooks_.status(progress(rate));
    next_status_ = std::chrono::steady_clock::now() + min_status_interval;
  }

  /// Reports the end of the pass.
  void finish(double rate) {
    recent_ = (2 * window_.weight() >= last_window_.weight() ? window_ : last_window_).metrics();
    if (rows_ > reported_rows_) report_progress(rate);
  }

  /// Metrics of all rows.
  [[nodiscard]] const MetricSums& all() const { return all_; }
  /// Metrics of the rows since the last progress report. If their weight is less than half of that of the previous
  /// report's rows, metrics of the latter. Available after finish().
  [[nodiscard]] const Metrics& recent() const { return recent_; }
  /// Whether the losses measure the row order instead of the model; see OrderCheck.
  [[nodiscard]] bool order_predicts_targets() const { return order_.order_predicts_targets(all_); }

 private:
  [[nodiscard]] TrainProgress progress(double rate) const {
    const Metrics all = all_.metrics();
    constexpr double not_available = std::numeric_limits<double>::quiet_NaN();
    const bool has_losses = is_predicted_ && !order_.order_predicts_targets(all_);
    return {.rows = rows_,
            .average_loss = has_losses ? all.loss : not_available,
            .recent_loss = has_losses ? window_.metrics().loss : not_available,
            .constant_loss = all.constant_loss,
            .rows_per_second = rate,
            .rss_bytes = peak_rss_bytes()};
  }

  void report_progress(double rate) {
    if (hooks_.progress) hooks_.progress(progress(rate));
    if (rows_ == next_report_) next_report_ *= 2;
    reported_rows_ = rows_;
    last_window_ = std::exchange(window_, MetricSums(task_));
  }

  const TrainHooks& hooks_;
  MetricSums all_;
  MetricSums window_;       ///< rows since the last progress report
  MetricSums last_window_;  ///< rows between the last two progress reports
  OrderCheck order_;
  Metrics recent_;
  Task task_;
  bool is_predicted_ = true;
  Index rows_ = 0;
  Index next_report_ = 1;    ///< number of rows at the next progress report
  Index reported_rows_ = 0;  ///< number of rows at the last progress report
  std::chrono::steady_clock::time_point next_status_ = std::chrono::steady_clock::now();
};

}  // namespace dyad
