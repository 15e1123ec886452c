#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "training/multi_pass_training.h"
#include "training/state/train_state.h"

// src/training: the training loop. One pass over the rows by the solvers of one_pass/, multi-pass training on cached
// rows by multi_pass/, checkpoints, progress, warnings and validation. state/ contains the settings, solvers and
// training state that a model file stores.

namespace dyad {

/// Fallback of classifiers: replaces the model by the constant class probability if its gain in log-likelihood over
/// that constant is too small to be distinguished from chance (see ClassEvidence). Regression models are never
/// replaced. Does not own its arguments; the caller keeps them alive. Not thread-safe.
template <typename Scalar>
class ConstantProbability {
 public:
  ConstantProbability(TrainState<Scalar>& state, const std::optional<MultiPassTraining<Scalar>>& multi_pass)
      : state_(state), multi_pass_(multi_pass) {}

  /// Adds the rows of the last TrainSolver::learn() with the predictions that it returned. `weights`: empty if all
  /// are 1.
  void add(std::span<const Scalar> targets, std::span<const double> predictions, std::span<const Scalar> weights) {
    const Target& target = state_.file.features.target;
    if (!likelihood_of(target.task).is_classification()) return;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      const double weight = weights.empty() ? 1 : static_cast<double>(weights[i]);
      const auto y = static_cast<double>(targets[i]);
      if (state_.solver->predicted_by_constant(i))
        state_.evidence->add_constant_prediction(y > 0, weight);
      else
        state_.evidence->add(y > 0, target.score(y, predictions[i]), weight);
    }
  }

  /// Sets the gain in log-likelihood over the best constant on held-out rows; null if no rows were held out.
  void set_held_out_gain(std::optional<double> nats) {
    has_held_out_ = nats.has_value();
    if (nats) state_.evidence->set_held_out(*nats);
  }
  /// Whether there is a gain on held-out rows.
  [[nodiscard]] bool has_held_out() const { return has_held_out_; }

  /// Whether the model is replaced by the constant.
  [[nodiscard]] bool replaces_model() const {
    if (!likelihood_of(state_.file.features.target.task).is_classification()) return false;
    if (state_.settings.solver == Solver::anova) return false;  // REML removes functions without evidence
    // If row weights act as repetition counts, the result must not depend on the row order. Progressive losses do, so
    // only the gain on held-out rows is used.
    const bool needs_held_out = multi_pass_ && multi_pass_->treats_weights_as_counts(state_.file.features);
    if (needs_held_out && !has_held_out_) return false;
    return (needs_held_out ? state_.evidence->held_out() : nats()) < ClassEvidence::required_nats;
  }
  /// Gain in log-likelihood over the best constant, in nats: ClassEvidence::nats().
  [[nodiscard]] double nats() const { return state_.evidence->nats(); }

  /// Sets the intercept to the log-odds of the positive class and all other parameters to 0.
  void apply_to(Model<double>& model) const {
    model.intercept = state_.evidence->log_odds();
    for (std::vector<double>* parameters : {&model.weights, &model.spectrum, &model.squares})
      std::fill(parameters->begin(), parameters->end(), 0.0);
  }

 private:
  TrainState<Scalar>& state_;
  const std::optional<MultiPassTraining<Scalar>>& multi_pass_;
  bool has_held_out_ = false;  ///< set_held_out_gain() was called with a value
};

}  // namespace dyad
