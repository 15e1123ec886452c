#include "inference/class_metrics.h"

#include <algorithm>
#include <cmath>

namespace dyad {
namespace {

/// Probabilities are clipped to at least this number before the logarithm, as for two classes.
constexpr double min_class_probability = 1e-12;

}  // namespace

ClassMetricSums::ClassMetricSums(std::vector<std::string> labels)
    : labels_(std::move(labels)), classes_(labels_.size()) {}

void ClassMetricSums::add(std::size_t target, std::span<const double> probabilities, double weight) {
  if (weight == 0) return;
  weight_ += weight;
  loss_ += -weight * std::log(std::max(probabilities[target], min_class_probability));
  const auto best =
      static_cast<std::size_t>(std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin());
  classes_[target].weight += weight;
  classes_[best].predicted += weight;
  if (best == target) classes_[best].correct += weight;
  for (std::size_t c = 0; c < classes_.size(); ++c)
    classes_[c].against_others.add(c == target ? 1 : 0, probabilities[c], weight);
}

Metrics ClassMetricSums::metrics() const {
  Metrics result;
  result.task = Task::classification;
  result.weight = weight();
  if (!(weight() > 0)) return result;
  double correct = 0;
  double auc = 0;
  double seen = 0;  // number of classes with rows
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const Class& one = classes_[c];
    const double rows = one.weight.value();
    const double predicted = one.predicted.value();
    ClassMetrics& metrics = result.classes.emplace_back();
    metrics.label = labels_[c];
    metrics.weight = rows;
    metrics.auc = one.against_others.metrics().auc;
    metrics.precision = predicted > 0 ? one.correct.value() / predicted : 0;
    metrics.recall = rows > 0 ? one.correct.value() / rows : 0;
    correct += one.correct.value();
    if (!(rows > 0)) continue;
    auc += metrics.auc;
    ++seen;
    result.constant_loss -= rows / weight() * std::log(rows / weight());
  }
  result.loss = result.logloss = loss_.value() / weight();
  result.accuracy = correct / weight();
  result.auc = auc / seen;
  return result;
}

}  // namespace dyad
