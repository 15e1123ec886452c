#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/archive.h"
#include "likelihood/logistic.h"

namespace dyad {

/// Whether rows speak for a model of classes rather than for a constant probability.
///
/// The evidence is the sum of the log-losses of the best constant on these rows less that of the model, each row
/// predicted before it was learned or held out. For rows whose class does not depend on their features, the likelihood
/// ratio of predictions that precede their rows has the expectation 1, so that the evidence exceeds log 20 with a
/// probability of at most 1/20 (Ville's inequality). The best constant is chosen afterwards, which makes this an upper
/// bound. With one positive row in 1,000 there is hardly any evidence; with 50 rows that are classified well, plenty.
class ClassEvidence {
 public:
  static constexpr double least_nats = 3;  // log 20

  /// Rows that were predicted before they were learned.
  void add(bool is_positive, double log_loss, double weight) {
    weight_ += weight;
    positive_ += is_positive ? weight : 0;
    loss_ += weight * log_loss;
  }

  /// A row that was predicted by a constant, before there was a model: it is no evidence, but counts for the constant.
  void add_constant(bool is_positive, double weight) {
    constant_weight_ += weight;
    constant_positive_ += is_positive ? weight : 0;
  }

  [[nodiscard]] double nats() const {
    return std::max(held_out_, (weight_ > 0 ? weight_ * entropy(positive_ / weight_) : 0) - loss_);
  }

  [[nodiscard]] bool is_enough() const { return nats() >= least_nats; }

  /// The evidence of rows that were held out, if any.
  void set_held_out(double nats) { held_out_ = nats; }
  [[nodiscard]] double held_out() const { return held_out_; }

  /// Of the positive class, neither of which is taken for impossible.
  [[nodiscard]] double log_odds() const {
    const double all = weight_ + constant_weight_;
    const double least = 0.5 / (all + 1);
    const double share = std::clamp(all > 0 ? (positive_ + constant_positive_) / all : 0.5, least, 1 - least);
    return std::log(share / (1 - share));
  }

  /// Models of version 0.1.0 do not have it; their training counts as evidence.
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
  double weight_ = 0;
  double positive_ = 0;
  double loss_ = 0;
  double held_out_ = 0;
  double constant_weight_ = 0;
  double constant_positive_ = 0;
};

}  // namespace dyad
