#pragma once

#include "features/moments.h"
#include "model/low_rank.h"
#include "moment/sums.h"

namespace dyad {

/// z = (x - mean) / scale, feature by feature: the update's formulas hold for z, the model and the rows speak of x.
/// Both directions are exact, and the rows, which may be sparse, are never touched. Features that have not varied yet
/// stay out.
template <typename Scalar>
class Coordinates {
 public:
  Coordinates(const FeatureMoments& features, bool centred);

  /// A model of z, with orthonormal factors, and how its factors came from those of the model of x:
  /// U_z = scale * U_x * rotation, each side for itself.
  struct Standard {
    Model<Scalar> model;
    Small<Scalar> left_rotation;
    Small<Scalar> right_rotation;
  };
  [[nodiscard]] Standard standard(const Model<Scalar>& model) const;

  /// The sums that rows of z would have given with the factors of `standard` as the probe, from those of x with the
  /// factors of `model`.
  [[nodiscard]] MomentSums<Scalar> standard(const MomentSums<Scalar>& sums, const Model<Scalar>& model,
                                            const Standard& standard) const;

  /// The model of x that predicts what the model of z does.
  [[nodiscard]] Model<Scalar> raw(const Model<Scalar>& standard) const;

 private:
  Vector<Scalar> mean_;
  Vector<Scalar> scale_;
  Vector<Scalar> inverse_;  ///< 0 where the scale is 0
};

}  // namespace dyad
