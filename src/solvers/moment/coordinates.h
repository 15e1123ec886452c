#pragma once

#include "model/low_rank.h"
#include "solvers/moment/feature_moments.h"
#include "solvers/moment/moment_sums.h"

namespace dyad {

/// The map z = (x - mean) / scale of each feature. The formulas of the update hold for z, the model and the rows are
/// those of x. Both directions are exact, and do not need the rows. Features that have not varied yet have scale 0 and
/// are left out.
class Coordinates {
 public:
  Coordinates(const FeatureMoments& features, bool centred);

  /// A model of z, with orthonormal factors, and how its factors came from those of the model of x:
  /// U_z = scale * U_x * rotation, each side for itself.
  struct Standard {
    Model<double> model;
    Small<double> left_rotation;
    Small<double> right_rotation;
  };
  [[nodiscard]] Standard standard(const Model<double>& model) const;

  /// The sums that rows of z would have given with the factors of `standard` as the probe, from those of x with the
  /// factors of `model`.
  [[nodiscard]] MomentSums<double> standard(const MomentSums<double>& sums, const Model<double>& model,
                                            const Standard& standard) const;

  /// The model of x that predicts what the model of z does.
  [[nodiscard]] Model<double> raw(const Model<double>& standard) const;

 private:
  Vector<double> mean_;
  Vector<double> scale_;
  Vector<double> inverse_;  ///< 0 where the scale is 0
};

}  // namespace dyad
