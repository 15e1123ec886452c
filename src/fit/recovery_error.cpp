#include "fit/recovery_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>

#include "model/low_rank.h"

namespace dyad {
namespace {

auto factors(const Model<double>& model) { return as_tall(model.factors, model.dim(), model.rank()); }

Eigen::VectorXd amplitude(const Model<double>& model) {
  return factors(model).col(0) * std::sqrt(std::max(0.0, model.spectrum.front()));
}

}  // namespace

double interaction_error(const Model<double>& model, const Model<double>& truth) {
  Eigen::VectorXd difference(model.rank() + truth.rank());
  difference << as_vector(model.spectrum), -as_vector(truth.spectrum);
  return spectral_norm<double>(side_by_side<double>(factors(model), factors(truth)), difference.asDiagonal());
}

double tan_largest_angle(const Model<double>& model, const Model<double>& truth) {
  const auto U = factors(model);
  const auto U_star = factors(truth);
  const Small<double> inside = U_star.transpose() * U;
  const Tall<double> outside = U - U_star * inside;
  const Eigen::FullPivLU<Small<double>> lu(inside);
  if (!lu.isInvertible()) return std::numeric_limits<double>::infinity();
  const Small<double> tangent = outside * lu.inverse();
  const Eigen::SelfAdjointEigenSolver<Small<double>> gram(tangent.transpose() * tangent, Eigen::EigenvaluesOnly);
  return std::sqrt(gram.eigenvalues().maxCoeff());
}

double amplitude_error(const Model<double>& model, const Model<double>& truth) {
  const Eigen::VectorXd a = amplitude(model);
  const Eigen::VectorXd a_star = amplitude(truth);
  return std::min((a - a_star).norm(), (a + a_star).norm());
}

}  // namespace dyad
