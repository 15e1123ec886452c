#pragma once

#include "base/archive.h"

namespace dyad {

/// Log-odds = shift + stretch * score, learned row by row from scores of rows that their model had not seen: what makes
/// a score a probability. Each row is one step of a Kalman filter for logistic regression; there is nothing to set.
class Calibration {
 public:
  [[nodiscard]] double log_odds(double score) const { return shift_ + stretch_ * score; }
  [[nodiscard]] double shift() const { return shift_; }
  [[nodiscard]] double stretch() const { return stretch_; }

  /// `positive`: 1 or 0.
  void learn(double score, double positive, double weight);

  /// The scores come from another model from here on.
  void loosen();

  void archive(Archive& archive);

 private:
  double shift_ = 0;
  double stretch_ = 2;  // where scores are E[y] of classes -1 and +1, small log-odds are twice the score
  double var_shift_ = 4;
  double covariance_ = 0;
  double var_stretch_ = 1;
};

}  // namespace dyad
