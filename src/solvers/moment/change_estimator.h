#pragma once

#include <dyad/moment.h>

#include "solvers/moment/feature_moments.h"
#include "solvers/moment/moment_sums.h"

namespace dyad {

/// What a batch says about the way from the model to the truth.
struct Change {
  Tall<double> dM_times_Z;  ///< bilinear: [dM Z_right, dM' Z_left], one above the other
  Vector<double> dw;
  Vector<double> dM_diagonal;  ///< for weights of their own; empty unless the diagonal is free
};

/// Turns sums into changes, for the moments that the features have (docs/method.md), and changes into the rest of a
/// model whose M is known.
class ChangeEstimator {
 public:
  explicit ChangeEstimator(const MomentOptions& options);

  /// What it needs of the next batch.
  [[nodiscard]] Collect wanted() const;

  /// Takes in what a batch showed of the features.
  void learn(const FeatureMoments& batch);

  void grow(const Growth& growth);
  void archive(Archive& archive);

  [[nodiscard]] Moments moments() const { return moments_; }
  /// Of all rows so far.
  [[nodiscard]] const FeatureMoments& features() const { return features_; }

  [[nodiscard]] Change change(const MomentSums<double>& sums, const Tall<double>& Z) const;

  /// Sets b, w and the squares of `next`, whose M is already the new one.
  void finish(Model<double>& next, const Model<double>& before, const MomentSums<double>& sums,
              const Change& change) const;

 private:
  [[nodiscard]] bool collects_features() const;

  MomentOptions options_;
  Sides sides_;
  Moments moments_;
  FeatureMoments features_;
};

}  // namespace dyad
