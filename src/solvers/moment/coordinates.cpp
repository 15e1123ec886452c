#include "solvers/moment/coordinates.h"

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// A feature counts as constant if its variance is at most this fraction of its mean square. The variance is a
/// difference of power sums. Its rounding error is a multiple of 1e-16 times the mean square.
constexpr double constant_feature_tolerance = 1e-12;

/// m'Mm, from the gradient 2Mm of the second-order terms at m.
double quadratic_form(const Vector<double>& gradient, const Vector<double>& m) { return gradient.dot(m) / 2; }

}  // namespace

Coordinates::Coordinates(const FeatureMoments& features, bool is_centered) {
  const Eigen::ArrayXd mean = features.mean();
  const Eigen::ArrayXd variance = features.variance();
  const Eigen::ArrayXd mean_square = variance + mean.square();
  const Eigen::ArrayXd squared_scale =
      is_centered ? Eigen::ArrayXd((variance > constant_feature_tolerance * mean_square).select(variance, 0))
                  : mean_square;
  const Eigen::ArrayXd scale = squared_scale.sqrt();
  mean_ = (is_centered ? mean : Eigen::ArrayXd::Zero(mean.size())).matrix();
  scale_ = scale.matrix();
  inverse_scale_ = (scale > 0).select(scale.inverse(), 0).matrix();
}

Coordinates::StandardModel Coordinates::to_standard(const Model<double>& model) const {
  const Sides sides(model);
  const RowMajorMatrix<double> scaled = scale_.asDiagonal() * as_row_major(model.factors, model.dim(), model.rank());
  const RowMajorMatrix<double> Q = sides.orthonormal_sides(scaled);
  // M_z = Q_left (R_left diag(lambda) R_right') Q_right'. The eigenvectors (bilinear: singular vectors) P of the k x k
  // matrix in the middle give the factors Q P.
  const Matrix<double> R_left = sides.left(Q).transpose() * sides.left(scaled);
  const Matrix<double> R_right = sides.right(Q).transpose() * sides.right(scaled);
  const Matrix<double> core = R_left * as_vector(model.spectrum).asDiagonal() * R_right.transpose();
  Matrix<double> P_left;
  Matrix<double> P_right;
  StandardModel result{model, {}, {}};
  if (sides.is_bilinear()) {
    const Svd<double> svd = compute_svd(core);
    P_left = svd.left;
    P_right = svd.right;
    as_vector(result.model.spectrum) = svd.values;
  } else {
    const SymmetricEigen<double> eigen = symmetric_eigen(core);
    P_left = P_right = eigen.vectors;
    as_vector(result.model.spectrum) = eigen.values;
  }
  auto factors = as_row_major(result.model.factors, model.dim(), model.rank());
  sides.left(factors) = sides.left(Q) * P_left;
  if (sides.is_bilinear()) sides.right(factors) = sides.right(Q) * P_right;
  // R is singular if features of scale 0 contribute to the factors; the pseudo-inverse omits these directions.
  result.left_rotation = pseudo_inverse(R_left) * P_left;
  result.right_rotation =
      sides.is_bilinear() ? Matrix<double>(pseudo_inverse(R_right) * P_right) : result.left_rotation;

  const Vector<double> gradient_at_mean = interaction_gradient(model, mean_);
  const double value_at_mean = quadratic_form(gradient_at_mean, mean_);
  result.model.intercept = model.intercept + as_vector(model.weights).dot(mean_) + value_at_mean;
  as_vector(result.model.weights) = scale_.cwiseProduct(as_vector(model.weights) + gradient_at_mean);
  if (!model.squares.empty())
    as_vector(result.model.squares) = scale_.cwiseAbs2().cwiseProduct(as_vector(model.squares));
  return result;
}

MomentSums<double> Coordinates::to_standard(const MomentSums<double>& sums, const Model<double>& model,
                                            const StandardModel& standard) const {
  const Sides sides(model);
  const auto U = as_row_major(model.factors, model.dim(), model.rank());
  const auto p0 = sums.p0;
  const Vector<double> p1 = sums.p1();
  MomentSums<double> result = sums;
  const Index k = model.rank();
  // sum r (x - m)((v - m_v)'U) = G - p1 (U'm_v)' - m (U'p1_v)' + p0 m (U'm_v)', where v is the other side of the row
  // (symmetric: v = x).
  const auto center = [&](auto G, const auto& side_p1, const auto& side_mean, const auto& other_U, const auto& other_p1,
                          const auto& other_mean, const Matrix<double>& rotation) {
    const Vector<double> mean_projected = other_U.transpose() * other_mean;
    const Vector<double> p1_projected = other_U.transpose() * other_p1;
    G -= side_p1 * mean_projected.transpose();
    G -= side_mean * (p1_projected - p0 * mean_projected).transpose();
    G = (G * rotation).eval();
  };
  auto G = result.moments.leftCols(k);
  center(sides.left(G), sides.left(p1), sides.left(mean_), sides.right(U), sides.right(p1), sides.right(mean_),
         standard.right_rotation);
  if (sides.is_bilinear())
    center(sides.right(G), sides.right(p1), sides.right(mean_), sides.left(U), sides.left(p1), sides.left(mean_),
           standard.left_rotation);
  result.moments.col(k) = p1 - p0 * mean_;
  result.moments = (inverse_scale_.asDiagonal() * result.moments).eval();
  if (sums.p2.size() > 0)
    result.p2 = inverse_scale_.cwiseAbs2().cwiseProduct(sums.p2 - 2 * mean_.cwiseProduct(p1) + p0 * mean_.cwiseAbs2());
  return result;
}

Model<double> Coordinates::from_standard(const Model<double>& standard) const {
  const Sides sides(standard);
  const Index k = standard.rank();
  const Matrix<double> factors = inverse_scale_.asDiagonal() * as_row_major(standard.factors, standard.dim(), k);
  Model<double> model = standard;
  const Matrix<double> spectrum = as_vector(standard.spectrum).asDiagonal();
  set_interactions(model, truncate_to_rank<double>(sides, factors, spectrum, k, EigenvalueSelection::largest));
  if (!standard.squares.empty())
    as_vector(model.squares) = inverse_scale_.cwiseAbs2().cwiseProduct(as_vector(standard.squares));
  const Vector<double> gradient_at_mean = interaction_gradient(model, mean_);
  as_vector(model.weights) = inverse_scale_.cwiseProduct(as_vector(standard.weights));
  model.intercept = standard.intercept - as_vector(model.weights).dot(mean_) + quadratic_form(gradient_at_mean, mean_);
  as_vector(model.weights) -= gradient_at_mean;
  return model;
}

}  // namespace dyad
