#pragma once

#include <chrono>
#include <limits>
#include <utility>

#include <dyad/train.h>

#include "base/peak_memory.h"
#include "inference/metrics.h"
#include "training/order_check.h"

namespace dyad {

/// Doubling row counts, so that endless streams print a bounded number of lines, and the losses between them.
class ProgressLines {
 public:
  ProgressLines(Task task, const TrainHooks& hooks)
      : hooks_(hooks), all_(task), window_(task), last_window_(task), order_(task), task_(task) {}

  /// `rate`: rows per second so far.
  void add(double target, double prediction, double weight, double rate) {
    all_.add(target, prediction, weight);
    window_.add(target, prediction, weight);
    order_.add(target, weight);
    ++rows_;
    if (rows_ == next_line_) line(rate);
  }

  /// Between blocks: where things stand, for whoever watches.
  void pulse(double rate) {
    constexpr std::chrono::milliseconds pause{100};
    if (!hooks_.status || std::chrono::steady_clock::now() < next_status_) return;
    hooks_.status(point(rate));
    next_status_ = std::chrono::steady_clock::now() + pause;
  }

  void finish(double rate) {
    recent_ = (2 * window_.weight() >= last_window_.weight() ? window_ : last_window_).metrics();
    if (rows_ > rows_at_line_) line(rate);
  }

  [[nodiscard]] const MetricSums& all() const { return all_; }
  /// Of the rows since the last doubling, or before it where those are few.
  [[nodiscard]] const Metrics& recent() const { return recent_; }
  /// Whether the losses measure the order of the rows; see OrderCheck.
  [[nodiscard]] bool are_about_order() const { return order_.is_about_order(all_); }

 private:
  [[nodiscard]] TrainProgress point(double rate) const {
    const Metrics all = all_.metrics();
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    const bool is_about_order = order_.is_about_order(all_);
    return {.rows = rows_,
            .average_loss = is_about_order ? none : all.loss,
            .recent_loss = is_about_order ? none : window_.metrics().loss,
            .constant_loss = all.of_best_constant,
            .rows_per_second = rate,
            .rss_bytes = peak_rss_bytes()};
  }

  void line(double rate) {
    if (hooks_.progress) hooks_.progress(point(rate));
    if (rows_ == next_line_) next_line_ *= 2;
    rows_at_line_ = rows_;
    last_window_ = std::exchange(window_, MetricSums(task_));
  }

  const TrainHooks& hooks_;
  MetricSums all_;
  MetricSums window_;
  MetricSums last_window_;
  OrderCheck order_;
  Metrics recent_;
  Task task_;
  Index rows_ = 0;
  Index next_line_ = 1;
  Index rows_at_line_ = 0;
  std::chrono::steady_clock::time_point next_status_ = std::chrono::steady_clock::now();
};

}  // namespace dyad
