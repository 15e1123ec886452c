#include "solvers/moment/change_estimator.h"

#include "model/low_rank.h"

namespace dyad {
namespace {

/// A feature whose det_j = phi_j - 1 - kappa_j^2 is at most this is treated as two-valued, and its dM_jj is 0. det_j
/// is the variance of x_j^2 that x_j does not explain linearly; it is 0 exactly for two-valued features. Sensitivity:
/// docs/constants.md.
constexpr double min_square_determinant = 0.05;

}  // namespace

ChangeEstimator::ChangeEstimator(const MomentOptions& options)
    : options_(options),
      sides_(options.shape.dim, options.shape.left_dim),
      moments_(options.shape.left_dim > 0 ? Moments::gaussian : options.moments),
      features_(needs_feature_moments() ? options.shape.dim : 0) {}

bool ChangeEstimator::needs_feature_moments() const {
  return moments_ != Moments::gaussian || options_.standardization != Standardization::none;
}

OptionalSums ChangeEstimator::required_sums() const {
  const bool needs_squares = moments_ != Moments::gaussian || options_.shape.diagonal != Diagonal::tied;
  return {.squares = needs_squares, .features = needs_feature_moments()};
}

void ChangeEstimator::add_feature_moments(const FeatureMoments& batch) {
  if (!needs_feature_moments()) return;
  features_ += batch;
  if (moments_ == Moments::automatic) moments_ = features_.is_gaussian() ? Moments::gaussian : Moments::estimated;
}

void ChangeEstimator::grow(const FeatureGrowth& growth) {
  options_.shape.dim = growth.left_after + growth.right_after;
  options_.shape.left_dim = options_.shape.left_dim > 0 ? growth.left_after : 0;
  sides_ = Sides(options_.shape.dim, options_.shape.left_dim);
  if (needs_feature_moments()) features_.grow(growth);
}

void ChangeEstimator::archive(Archive& archive) {
  archive.choice("moments", moments_, Moments::estimated);
  if (needs_feature_moments()) archive.group("features", [&] { features_.archive(archive, options_.shape.dim); });
}

ModelChange ChangeEstimator::estimate(const MomentSums<double>& sums, const RowMajorMatrix<double>& Z) const {
  const double n = sums.weight;
  const double p0 = sums.p0;
  if (sides_.is_bilinear()) return {sums.G() / n, sums.p1() / n, {}};
  if (sums.p2.size() == 0) return {(sums.G() - p0 * Z) / (2 * n), sums.p1() / n, {}};

  // (dw_j, dM_jj) = [1 kappa; kappa phi-1]^-1 (p1_j, p2_j - p0) / n
  const bool is_gaussian = moments_ == Moments::gaussian;
  const Index d = options_.shape.dim;
  const Eigen::ArrayXd kappa = is_gaussian ? Eigen::ArrayXd::Zero(d) : features_.skewness();
  const Eigen::ArrayXd phi = is_gaussian ? Eigen::ArrayXd::Constant(d, 3) : features_.kurtosis();
  const Eigen::ArrayXd first = sums.p1().array() / sums.weight;
  const Eigen::ArrayXd second = (sums.p2.array() - sums.p0) / sums.weight;
  const Eigen::ArrayXd det = phi - 1 - kappa.square();
  const bool has_diagonal = options_.shape.diagonal != Diagonal::zero;
  const Eigen::ArrayXd diagonal = (det > min_square_determinant && Eigen::ArrayX<bool>::Constant(d, has_diagonal))
                                      .select((second - kappa * first) / det, 0);

  ModelChange change;
  change.dw = (first - kappa * diagonal).matrix();
  const Vector<double> dM_diagonal = diagonal.matrix();
  change.dM_times_Z = (sums.G() - sums.p2.asDiagonal() * Z) / (2 * n);
  if (options_.shape.diagonal == Diagonal::tied) change.dM_times_Z += dM_diagonal.asDiagonal() * Z;
  if (options_.shape.diagonal == Diagonal::free) change.dM_diagonal = dM_diagonal;
  return change;
}

void ChangeEstimator::complete_model(Model<double>& next, const Model<double>& before, const MomentSums<double>& sums,
                                     const ModelChange& change) const {
  if (options_.shape.linear) as_vector(next.weights) = as_vector(before.weights) + change.dw;
  if (options_.shape.diagonal != Diagonal::tied) {
    // The coefficient of x_j^2 is M_jj + squares_j. It is 0 (diagonal zero), or its previous value plus dM_jj (free).
    Vector<double> squares = -diagonal_of_interactions(next);
    if (options_.shape.diagonal == Diagonal::free)
      squares += diagonal_of_interactions(before) + as_vector(before.squares) + change.dM_diagonal;
    next.squares.assign(squares.data(), squares.data() + squares.size());
  }
  next.intercept = before.intercept;
  if (options_.shape.intercept)
    next.intercept += sums.p0 / sums.weight - (next.mean_interaction() - before.mean_interaction());
}

}  // namespace dyad
