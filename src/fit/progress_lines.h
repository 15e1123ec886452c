#pragma once

#include <utility>

#include <dyad/train.h>

#include "fit/metrics.h"
#include "fit/peak_memory.h"

namespace dyad {

/// Doubling row counts, so that endless streams print a bounded number of lines, and the losses between them.
class ProgressLines {
 public:
  ProgressLines(Task task, const TrainHooks& hooks)
      : hooks_(hooks), all_(task), window_(task), last_window_(task), task_(task) {}

  /// `rate`: rows per second so far.
  void add(double target, double prediction, double weight, double rate) {
    all_.add(target, prediction, weight);
    window_.add(target, prediction, weight);
    ++rows_;
    if (rows_ == next_line_) line(rate);
  }

  void finish(double rate) {
    recent_ = (2 * window_.weight() >= last_window_.weight() ? window_ : last_window_).metrics();
    if (rows_ > rows_at_line_) line(rate);
  }

  [[nodiscard]] const MetricSums& all() const { return all_; }
  /// Of the rows since the last doubling, or before it where those are few.
  [[nodiscard]] const Metrics& recent() const { return recent_; }

 private:
  void line(double rate) {
    if (hooks_.progress) {
      TrainProgress point;
      point.rows = rows_;
      const Metrics all = all_.metrics();
      point.average_loss = all.loss();
      point.constant_loss = all.of_best_constant;
      point.recent_loss = window_.metrics().loss();
      point.rows_per_second = rate;
      point.rss_bytes = peak_rss_bytes();
      hooks_.progress(point);
    }
    if (rows_ == next_line_) next_line_ *= 2;
    rows_at_line_ = rows_;
    last_window_ = std::exchange(window_, MetricSums(task_));
  }

  const TrainHooks& hooks_;
  MetricSums all_;
  MetricSums window_;
  MetricSums last_window_;
  Metrics recent_;
  Task task_;
  Index rows_ = 0;
  Index next_line_ = 1;
  Index rows_at_line_ = 0;
};

}  // namespace dyad
