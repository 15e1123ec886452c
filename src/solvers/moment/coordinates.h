#pragma once

#include "model/low_rank.h"
#include "solvers/moment/feature_moments.h"
#include "solvers/moment/moment_sums.h"

namespace dyad {

/// Standardization z = (x - mean) / scale of the features, applied to models and sums instead of rows. The formulas of
/// ChangeEstimator hold for z; model and rows refer to x. With S = diag(scale) and mean m:
///   M_z = S M S      w_z = S (w + 2 M m)      b_z = b + w'm + m'Mm.
/// Both transformations preserve predictions up to rounding. Constant features (not centered: features that are always
/// 0) have scale 0, and transformed models do not use them. Immutable; thread-safe.
class Coordinates {
 public:
  /// `is_centered`: true uses mean and standard deviation; false uses mean 0 and the root mean square as scale.
  Coordinates(const FeatureMoments& features, bool is_centered);

  /// A model of z with orthonormal factors U_z = S U_x rotation (bilinear: for each side).
  struct StandardModel {
    Model<double> model;
    Matrix<double> left_rotation;
    Matrix<double> right_rotation;
  };
  [[nodiscard]] StandardModel to_standard(const Model<double>& model) const;

  /// Sums of the rows z with the factors of `standard` as the probe. `sums`: those of the rows x with the factors of
  /// `model` as the probe.
  [[nodiscard]] MomentSums<double> to_standard(const MomentSums<double>& sums, const Model<double>& model,
                                               const StandardModel& standard) const;

  /// The model of x with the predictions of the model of z.
  [[nodiscard]] Model<double> from_standard(const Model<double>& standard) const;

 private:
  Vector<double> mean_;
  Vector<double> scale_;
  Vector<double> inverse_scale_;  ///< 0 if the scale is 0
};

}  // namespace dyad
