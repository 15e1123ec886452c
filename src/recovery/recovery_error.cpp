#include "recovery/recovery_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "linalg/decompositions.h"
#include "model/low_rank.h"

namespace dyad {
namespace {

auto factors(const Model<double>& model) { return as_row_major(model.factors, model.dim(), model.rank()); }

/// a with M = aa' for a model of rank 1; 0 if its eigenvalue is negative.
Eigen::VectorXd amplitude(const Model<double>& model) {
  return factors(model).col(0) * std::sqrt(std::max(0.0, model.spectrum.front()));
}

/// Tangent of the largest canonical angle between the column spaces of orthonormal U and U*: the largest singular value
/// of (I - U* U*') U (U*'U)^-1, which is accurate for small angles.
double largest_tangent(const RowMajorMatrix<double>& U, const RowMajorMatrix<double>& U_star) {
  const Matrix<double> projection = U_star.transpose() * U;
  const RowMajorMatrix<double> complement = U - U_star * projection;
  const Svd<double> svd = compute_svd(projection);
  const double rounding = std::numeric_limits<double>::epsilon() * static_cast<double>(projection.rows());
  if (!(svd.values.minCoeff() > rounding * svd.values.maxCoeff())) return std::numeric_limits<double>::infinity();
  const RowMajorMatrix<double> tangent = complement * svd.right * svd.values.cwiseInverse().asDiagonal();
  return std::sqrt(symmetric_eigen<double>(tangent.transpose() * tangent).values.maxCoeff());
}

}  // namespace

double interaction_error(const Model<double>& model, const Model<double>& truth) {
  const Sides sides(truth);
  if (!truth.squares.empty()) {
    const Eigen::VectorXd diagonal = diagonal_of_interactions(model) - diagonal_of_interactions(truth);
    return operator_norm(truth.dim(), [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> {
      return sides.interactions_times(model, Z) - sides.interactions_times(truth, Z) - diagonal.asDiagonal() * Z;
    });
  }
  Eigen::VectorXd difference(model.rank() + truth.rank());
  difference << as_vector(model.spectrum), -as_vector(truth.spectrum);
  return spectral_norm(sides, concatenate_columns<double>(factors(model), factors(truth)), difference.asDiagonal());
}

double square_error(const Model<double>& model, const Model<double>& truth) {
  if (truth.squares.empty()) return 0;
  return (diagonal_of_interactions(model) + as_vector(model.squares) - diagonal_of_interactions(truth) -
          as_vector(truth.squares))
      .norm();
}

double tan_largest_angle(const Model<double>& model, const Model<double>& truth) {
  const Sides sides(truth);
  const double left = largest_tangent(sides.left(factors(model)), sides.left(factors(truth)));
  return sides.is_bilinear() ? std::max(left, largest_tangent(sides.right(factors(model)), sides.right(factors(truth))))
                             : left;
}

double amplitude_error(const Model<double>& model, const Model<double>& truth) {
  const Eigen::VectorXd a = amplitude(model);
  const Eigen::VectorXd a_star = amplitude(truth);
  return std::min((a - a_star).norm(), (a + a_star).norm());
}

double operator_norm(Index dim, const std::function<RowMajorMatrix<double>(const RowMajorMatrix<double>&)>& A_times) {
  constexpr int max_iterations = 100;  // sensitivity: docs/constants.md
  // Iteration stops when the estimate grows by less than this in one step.
  constexpr double relative_tolerance = 1e-4;
  // A block of several vectors converges faster than a single one if eigenvalues are close to each other. Sensitivity:
  // docs/constants.md.
  constexpr Index max_block_size = 8;
  Random random(1, start_stream);
  RowMajorMatrix<double> Z = random_orthonormal<double>(random, dim, std::min<Index>(dim, max_block_size));
  double norm = 0;
  for (int iteration = 0; iteration < max_iterations; ++iteration) {
    const RowMajorMatrix<double> AZ = A_times(Z);
    const Matrix<double> gram = AZ.transpose() * AZ;
    const double estimate = std::sqrt(symmetric_eigen<double>(gram).values.maxCoeff());
    if (!std::isfinite(estimate) || estimate - norm <= relative_tolerance * estimate) return estimate;
    norm = estimate;
    Z = orthonormalize<double>(AZ);
  }
  return norm;
}

}  // namespace dyad
