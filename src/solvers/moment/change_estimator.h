#pragma once

#include <dyad/moment.h>

#include "solvers/moment/feature_moments.h"
#include "solvers/moment/moment_sums.h"

/// Folder solvers/moment: the moment solvers of Lin and Ye (2016). `MomentSums` are sums over rows, `ChangeEstimator`
/// estimates parameter changes from them, `OneScan` and `PaperSolver` are the two updates, and `MomentLearner` trains
/// in one pass with a line search.

namespace dyad {

/// Estimate of the difference between the true parameters and those of the model, from one batch.
struct ModelChange {
  RowMajorMatrix<double> dM_times_Z;  ///< dM Z for the probe Z; bilinear: [dM Z_right; dM' Z_left]
  Vector<double> dw;                  ///< change of the weights
  Vector<double> dM_diagonal;         ///< change of the coefficients of x_j^2; empty unless the diagonal is free
};

/// Estimates the change of the parameters from the sums of a batch of n rows, for independent standardized features
/// with third moments kappa_j and fourth moments phi_j (docs/method.md):
///   (dw_j, dM_jj) = [1 kappa_j; kappa_j phi_j - 1]^-1 (p1_j, p2_j - p0) / n
///   dM Z = (G - diag(p2) Z) / (2n) + diag(dM_jj) Z
/// The last term is absent for a zero diagonal, where dM_jj = 0, and for a free one, where dM_jj is a separate result.
/// Gaussian features (kappa = 0, phi = 3): dM Z = (G - p0 Z) / (2n) and dw = p1 / n. Bilinear: dM Z = G / n.
/// Not thread-safe. Const functions can run concurrently.
class ChangeEstimator {
 public:
  explicit ChangeEstimator(const MomentOptions& options);

  /// Optional sums that the next batch must contain.
  [[nodiscard]] OptionalSums required_sums() const;

  /// Adds the feature moments of a batch. The first batch decides between Gaussian and estimated moments if the option
  /// is Moments::automatic.
  void add_feature_moments(const FeatureMoments& batch);

  void grow(const FeatureGrowth& growth);
  void archive(Archive& archive);

  /// Moments::automatic before the first batch.
  [[nodiscard]] Moments moments() const { return moments_; }
  /// Moments of all rows so far. Empty if they are not needed.
  [[nodiscard]] const FeatureMoments& features() const { return features_; }

  /// Change of the parameters from sums with the probe `Z`.
  [[nodiscard]] ModelChange estimate(const MomentSums<double>& sums, const RowMajorMatrix<double>& Z) const;

  /// Sets b, w and the squares of `next`, whose M is set already. `before`: the model that the residuals of `sums`
  /// refer to.
  void complete_model(Model<double>& next, const Model<double>& before, const MomentSums<double>& sums,
                      const ModelChange& change) const;

 private:
  [[nodiscard]] bool needs_feature_moments() const;

  MomentOptions options_;
  Sides sides_;
  Moments moments_;
  FeatureMoments features_;
};

}  // namespace dyad
