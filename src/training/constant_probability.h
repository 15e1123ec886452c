#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "training/multi_pass_training.h"
#include "training/state/train_state.h"

namespace dyad {

/// Replaces a classifier by the constant class probability if the rows give too little evidence for it; see
/// ClassEvidence. Regression is never replaced. Does not own its arguments; the caller keeps them alive.
template <typename Scalar>
class ConstantProbability {
 public:
  ConstantProbability(TrainState<Scalar>& state, const std::optional<MultiPassTraining<Scalar>>& multi_pass)
      : state_(state), multi_pass_(multi_pass) {}

  /// Rows that the solver predicted before it learned them. `weights`: empty if all are 1.
  void add(std::span<const Scalar> targets, std::span<const double> predictions, std::span<const Scalar> weights) {
    const Target& target = state_.file.features.target;
    if (!likelihood_of(target.task).is_classification()) return;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const double weight = weights.empty() ? 1 : static_cast<double>(weights[i]);
      const auto y = static_cast<double>(targets[i]);
      if (state_.solver->is_by_constant(i))
        state_.evidence->add_constant(y > 0, weight);
      else
        state_.evidence->add(y > 0, target.score(y, predictions[i]), weight);
    }
  }

  /// Log-likelihood that the model gains over the best constant on held-out rows; null if none were held out.
  void set_held_out_gain(std::optional<double> nats) {
    has_held_out_ = nats.has_value();
    if (nats) state_.evidence->set_held_out(*nats);
  }
  [[nodiscard]] bool has_held_out() const { return has_held_out_; }

  /// Whether the model is replaced.
  [[nodiscard]] bool applies() const {
    if (!likelihood_of(state_.file.features.target.task).is_classification()) return false;
    // The order of rows that count exactly has no effect, so that only held-out rows are evidence.
    const bool counts_exactly = multi_pass_ && multi_pass_->counts_exactly(state_.file.features);
    if (counts_exactly && !has_held_out_) return false;
    return (counts_exactly ? state_.evidence->held_out() : nats()) < ClassEvidence::least_nats;
  }
  [[nodiscard]] double nats() const { return state_.evidence->nats(); }

  void apply_to(Model<double>& model) const {
    model.intercept = state_.evidence->log_odds();
    for (std::vector<double>* numbers : {&model.weights, &model.spectrum, &model.squares})
      std::fill(numbers->begin(), numbers->end(), 0.0);
  }

 private:
  TrainState<Scalar>& state_;
  const std::optional<MultiPassTraining<Scalar>>& multi_pass_;
  bool has_held_out_ = false;
};

}  // namespace dyad
