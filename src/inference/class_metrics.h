#pragma once

#include <span>
#include <string>
#include <vector>

#include <dyad/evaluate.h>

#include "inference/metrics.h"

namespace dyad {

/// Weighted sums over rows, from which the metrics of a model of more than two classes are computed in constant memory.
/// Not thread-safe.
class ClassMetricSums {
 public:
  explicit ClassMetricSums(std::vector<std::string> labels);

  /// `target`: index of the class; `probabilities`: one per class.
  void add(std::size_t target, std::span<const double> probabilities, double weight);

  [[nodiscard]] Metrics metrics() const;
  /// Total weight of the rows.
  [[nodiscard]] double weight() const { return weight_.value(); }

 private:
  struct Class {
    MetricSums against_others{Task::classification};
    CompensatedSum weight;     ///< of its rows
    CompensatedSum predicted;  ///< of the rows that are predicted to be of the class
    CompensatedSum correct;    ///< of its rows among these
  };

  std::vector<std::string> labels_;
  std::vector<Class> classes_;
  CompensatedSum weight_;
  CompensatedSum loss_;
};

}  // namespace dyad
