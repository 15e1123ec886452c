#include "solvers/gauss_newton/normal_equations.h"

#include <stdexcept>

namespace dyad {

double ParameterVector::dot(const ParameterVector& other) const {
  return intercept * other.intercept + features.cwiseProduct(other.features).sum() + squares.dot(other.squares);
}

void ParameterVector::scale_and_add(double scale, const ParameterVector& other) {
  intercept = other.intercept + scale * intercept;
  features = other.features + scale * features;
  squares = other.squares + scale * squares;
}

void ParameterVector::add(double scale, const ParameterVector& other) {
  intercept += scale * other.intercept;
  features += scale * other.features;
  squares += scale * other.squares;
}

void TargetSums::add(const TargetSums& other) {
  weight += other.weight;
  sum += other.sum;
  squares += other.squares;
}

void TargetSums::archive(Archive& archive) {
  archive.number("weight", weight);
  archive.number("sum", sum);
  archive.number("squares", squares);
}

void RowSums::set_zero(Index dim, Index width, bool has_squares) {
  intercept = loss = curvature = 0;
  features.setZero(dim, width);
  squares.setZero(has_squares ? dim : 0);
  for (auto& gram : projection_grams) gram.setZero(width - 1, width - 1);
}

void RowSums::add(const RowSums& other) {
  features += other.features;
  squares += other.squares;
  intercept += other.intercept;
  loss += other.loss;
  curvature += other.curvature;
  for (std::size_t side = 0; side < 2; ++side) projection_grams[side] += other.projection_grams[side];
}

void RowSums::archive(Archive& archive, Index dim, Index width, bool has_squares) {
  archive.matrix("features", features, dim, width);
  archive.matrix("squares", squares, has_squares ? dim : 0, 1);
  archive.number("intercept", intercept);
  archive.number("loss", loss);
  archive.number("curvature", curvature);
  archive.matrix("left", projection_grams[0], width - 1, width - 1);
  archive.matrix("right", projection_grams[1], width - 1, width - 1);
}

RowSums NormalEquations::solve_dual(const SignedFactors<double>&, const ParameterVector&,
                                    const ParameterVector&) const {
  throw std::logic_error(
      "NormalEquations::solve_dual is not available for these rows: call it only if prefers_dual() is true");
}

}  // namespace dyad
