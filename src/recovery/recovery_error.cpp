#include "recovery/recovery_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "linalg/decompositions.h"
#include "model/low_rank.h"

namespace dyad {
namespace {

auto factors(const Model<double>& model) { return as_tall(model.factors, model.dim(), model.rank()); }

Eigen::VectorXd amplitude(const Model<double>& model) {
  return factors(model).col(0) * std::sqrt(std::max(0.0, model.spectrum.front()));
}

double tan_between(const Tall<double>& U, const Tall<double>& U_star) {
  const Small<double> inside = U_star.transpose() * U;
  const Tall<double> outside = U - U_star * inside;
  const SingularValues<double> svd = singular_values(inside);
  const double rounding = std::numeric_limits<double>::epsilon() * static_cast<double>(inside.rows());
  if (!(svd.values.minCoeff() > rounding * svd.values.maxCoeff())) return std::numeric_limits<double>::infinity();
  const Tall<double> tangent = outside * svd.right * svd.values.cwiseInverse().asDiagonal();
  return std::sqrt(symmetric_eigen<double>(tangent.transpose() * tangent).values.maxCoeff());
}

}  // namespace

double interaction_error(const Model<double>& model, const Model<double>& truth) {
  const Sides sides(truth);
  if (!truth.squares.empty()) {
    const Eigen::VectorXd diagonal = diagonal_of_interactions(model) - diagonal_of_interactions(truth);
    return operator_norm(truth.dim(), [&](const Tall<double>& Z) -> Tall<double> {
      return sides.interactions_times(model, Z) - sides.interactions_times(truth, Z) - diagonal.asDiagonal() * Z;
    });
  }
  Eigen::VectorXd difference(model.rank() + truth.rank());
  difference << as_vector(model.spectrum), -as_vector(truth.spectrum);
  return spectral_norm(sides, side_by_side<double>(factors(model), factors(truth)), difference.asDiagonal());
}

double square_error(const Model<double>& model, const Model<double>& truth) {
  if (truth.squares.empty()) return 0;
  return (diagonal_of_interactions(model) + as_vector(model.squares) - diagonal_of_interactions(truth) -
          as_vector(truth.squares))
      .norm();
}

double tan_largest_angle(const Model<double>& model, const Model<double>& truth) {
  const Sides sides(truth);
  const double left = tan_between(sides.left(factors(model)), sides.left(factors(truth)));
  return sides.two() ? std::max(left, tan_between(sides.right(factors(model)), sides.right(factors(truth)))) : left;
}

double amplitude_error(const Model<double>& model, const Model<double>& truth) {
  const Eigen::VectorXd a = amplitude(model);
  const Eigen::VectorXd a_star = amplitude(truth);
  return std::min((a - a_star).norm(), (a + a_star).norm());
}

double operator_norm(Index dim, const std::function<Tall<double>(const Tall<double>&)>& A_times) {
  constexpr int most_iterations = 100;
  constexpr double settled = 1e-4;
  Random random(1, start_stream);
  Tall<double> Z = random_orthonormal<double>(random, dim, std::min<Index>(dim, 8));
  double norm = 0;
  for (int iteration = 0; iteration < most_iterations; ++iteration) {
    const Tall<double> AZ = A_times(Z);
    const Small<double> gram = AZ.transpose() * AZ;
    const double found = std::sqrt(symmetric_eigen<double>(gram).values.maxCoeff());
    if (!std::isfinite(found) || found - norm <= settled * found) return found;
    norm = found;
    Z = orthonormal<double>(AZ);
  }
  return norm;
}

}  // namespace dyad
