#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/archive.h"
#include "likelihood/logistic.h"

namespace dyad {

/// Evidence of the rows for a classifier against a constant class probability.
///
/// The evidence is the sum of the log-losses of the best constant minus that of the model, over rows that were
/// predicted before they were learned, or held out. If classes do not depend on features, the likelihood ratio of such
/// predictions against the true constant has expectation 1. By Ville's inequality it then exceeds 20 at any time with
/// probability at most 1/20. The best constant is chosen afterwards and has a smaller loss than the true one, so that
/// the probability is smaller still.
class ClassEvidence {
 public:
  /// log 20, rounded: evidence from which the classifier is used. See the bound above.
  static constexpr double required_nats = 3;

  /// Adds a row that the model predicted before learning it.
  void add(bool is_positive, double log_loss, double weight) {
    weight_ += weight;
    positive_ += is_positive ? weight : 0;
    loss_ += weight * log_loss;
  }

  /// Adds a row that was predicted by a constant, before there was a model. It affects log_odds() only.
  void add_constant_prediction(bool is_positive, double weight) {
    constant_weight_ += weight;
    constant_positive_ += is_positive ? weight : 0;
  }

  /// The evidence of held-out rows, or that of rows predicted before they were learned if it is larger.
  [[nodiscard]] double nats() const {
    return std::max(held_out_, (weight_ > 0 ? weight_ * binary_entropy(positive_ / weight_) : 0) - loss_);
  }

  [[nodiscard]] bool is_sufficient() const { return nats() >= required_nats; }

  /// Sets the evidence of held-out rows; 0 if there are none.
  void set_held_out(double nats) { held_out_ = nats; }
  [[nodiscard]] double held_out() const { return held_out_; }

  /// Log-odds of the positive class over all rows. Its probability is bounded away from 0 and 1 by half a row.
  [[nodiscard]] double log_odds() const {
    const double weight = weight_ + constant_weight_;
    const double min_share = 0.5 / (weight + 1);
    const double share =
        std::clamp(weight > 0 ? (positive_ + constant_positive_) / weight : 0.5, min_share, 1 - min_share);
    return std::log(share / (1 - share));
  }

  /// Training states of version 0.1.0 have no evidence; their classifiers stay in use.
  void archive(Archive& archive) {
    if (archive.is_loading() && !archive.has("weight")) {
      loss_ = -std::numeric_limits<double>::max();
      return;
    }
    archive.number("weight", weight_);
    archive.number("positive", positive_);
    archive.number("loss", loss_);
    archive.number("held_out", held_out_);
    if (archive.is_loading() && !archive.has("constant_weight")) return;
    archive.number("constant_weight", constant_weight_);
    archive.number("constant_positive", constant_positive_);
  }

 private:
  double weight_ = 0;             ///< sum of the weights of rows predicted by the model
  double positive_ = 0;           ///< part of weight_ that belongs to the positive class
  double loss_ = 0;               ///< sum of the weighted log-losses of rows predicted by the model
  double held_out_ = 0;           ///< evidence of held-out rows in nats
  double constant_weight_ = 0;    ///< sum of the weights of rows predicted by a constant
  double constant_positive_ = 0;  ///< part of constant_weight_ that belongs to the positive class
};

}  // namespace dyad
