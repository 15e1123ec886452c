#include "solvers/moment/coordinates.h"

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// The second-order terms at m, from their slope there.
double value(const Vector<double>& slope_at_m, const Vector<double>& m) { return slope_at_m.dot(m) / 2; }

}  // namespace

Coordinates::Coordinates(const FeatureMoments& features, bool centred) {
  const Eigen::ArrayXd mean = features.mean();
  const Eigen::ArrayXd variance = features.variance();
  const Eigen::ArrayXd mean_square = variance + mean.square();
  // Below this a feature is constant up to rounding.
  const Eigen::ArrayXd spread =
      centred ? Eigen::ArrayXd((variance > 1e-12 * mean_square).select(variance, 0)) : mean_square;
  const Eigen::ArrayXd scale = spread.sqrt();
  mean_ = (centred ? mean : Eigen::ArrayXd::Zero(mean.size())).matrix();
  scale_ = scale.matrix();
  inverse_ = (scale > 0).select(scale.inverse(), 0).matrix();
}

Coordinates::Standard Coordinates::standard(const Model<double>& model) const {
  const Sides sides(model);
  const Tall<double> scaled = scale_.asDiagonal() * as_tall(model.factors, model.dim(), model.rank());
  const Tall<double> Q = sides.orthonormal_sides(scaled);
  // M_z = Q_left (R_left diag(lambda) R_right') Q_right', and the small matrix in the middle is made diagonal.
  const Small<double> R_left = sides.left(Q).transpose() * sides.left(scaled);
  const Small<double> R_right = sides.right(Q).transpose() * sides.right(scaled);
  const Small<double> core = R_left * as_vector(model.spectrum).asDiagonal() * R_right.transpose();
  Small<double> P_left;
  Small<double> P_right;
  Standard result{model, {}, {}};
  if (sides.two()) {
    const SingularValues<double> svd = singular_values(core);
    P_left = svd.left;
    P_right = svd.right;
    as_vector(result.model.spectrum) = svd.values;
  } else {
    const SymmetricEigen<double> eigen = symmetric_eigen(core);
    P_left = P_right = eigen.vectors;
    as_vector(result.model.spectrum) = eigen.values;
  }
  auto factors = as_tall(result.model.factors, model.dim(), model.rank());
  sides.left(factors) = sides.left(Q) * P_left;
  if (sides.two()) sides.right(factors) = sides.right(Q) * P_right;
  // Directions in which no feature has varied yet have no inverse, and the pseudo-inverse leaves them out.
  result.left_rotation = pseudo_inverse(R_left) * P_left;
  result.right_rotation = sides.two() ? Small<double>(pseudo_inverse(R_right) * P_right) : result.left_rotation;

  const Vector<double> slope_at_mean = interaction_slope(model, mean_);
  const double at_mean = value(slope_at_mean, mean_);
  result.model.intercept = model.intercept + as_vector(model.weights).dot(mean_) + at_mean;
  as_vector(result.model.weights) = scale_.cwiseProduct(as_vector(model.weights) + slope_at_mean);
  if (!model.squares.empty())
    as_vector(result.model.squares) = scale_.cwiseAbs2().cwiseProduct(as_vector(model.squares));
  return result;
}

MomentSums<double> Coordinates::standard(const MomentSums<double>& sums, const Model<double>& model,
                                         const Standard& standard) const {
  const Sides sides(model);
  const auto U = as_tall(model.factors, model.dim(), model.rank());
  const auto p0 = sums.p0;
  const Vector<double> p1 = sums.p1();
  MomentSums<double> result = sums;
  const Index k = model.rank();
  // sum r (x - m)((z - m_z)'U) = G - p1 (U'm_z)' - m (U'p1_z)' + p0 m (U'm_z)', z being the other side.
  const auto centre = [&](auto G, const auto& own_p1, const auto& own_mean, const auto& other_U, const auto& other_p1,
                          const auto& other_mean, const Small<double>& rotation) {
    const Vector<double> mean_projected = other_U.transpose() * other_mean;
    const Vector<double> p1_projected = other_U.transpose() * other_p1;
    G -= own_p1 * mean_projected.transpose();
    G -= own_mean * (p1_projected - p0 * mean_projected).transpose();
    G = (G * rotation).eval();
  };
  auto G = result.moments.leftCols(k);
  centre(sides.left(G), sides.left(p1), sides.left(mean_), sides.right(U), sides.right(p1), sides.right(mean_),
         standard.right_rotation);
  if (sides.two())
    centre(sides.right(G), sides.right(p1), sides.right(mean_), sides.left(U), sides.left(p1), sides.left(mean_),
           standard.left_rotation);
  result.moments.col(k) = p1 - p0 * mean_;
  result.moments = (inverse_.asDiagonal() * result.moments).eval();
  if (sums.p2.size() > 0)
    result.p2 = inverse_.cwiseAbs2().cwiseProduct(sums.p2 - 2 * mean_.cwiseProduct(p1) + p0 * mean_.cwiseAbs2());
  return result;
}

Model<double> Coordinates::raw(const Model<double>& standard) const {
  const Sides sides(standard);
  const Index k = standard.rank();
  const Small<double> factors = inverse_.asDiagonal() * as_tall(standard.factors, standard.dim(), k);
  Model<double> model = standard;
  const Small<double> spectrum = as_vector(standard.spectrum).asDiagonal();
  set_interactions(model, best_rank_k<double>(sides, factors, spectrum, k, Keep::largest));
  if (!standard.squares.empty())
    as_vector(model.squares) = inverse_.cwiseAbs2().cwiseProduct(as_vector(standard.squares));
  const Vector<double> slope_at_mean = interaction_slope(model, mean_);
  as_vector(model.weights) = inverse_.cwiseProduct(as_vector(standard.weights));
  model.intercept = standard.intercept - as_vector(model.weights).dot(mean_) + value(slope_at_mean, mean_);
  as_vector(model.weights) -= slope_at_mean;
  return model;
}

}  // namespace dyad
