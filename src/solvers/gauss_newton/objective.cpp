#include "solvers/gauss_newton/objective.h"

#include <algorithm>
#include <cmath>

namespace dyad {

SignedFactors<double> apply_step(SignedFactors<double> parameters, const ParameterVector& step) {
  parameters.intercept += step.intercept;
  parameters.weights += step.features.col(0);
  parameters.A += step.features.rightCols(parameters.rank());
  if (parameters.squares.size() > 0) parameters.squares += step.squares;
  return parameters;
}

Objective::Objective(std::shared_ptr<const NormalEquations> equations, const NewtonOptions& options)
    : equations_(std::move(equations)), options_(options) {
  const TargetSums targets = equations_->targets();
  total_weight_ = targets.weight;
  if (!(total_weight_ > 0)) return;
  const double mean = targets.sum / total_weight_;
  const double variance = std::max(0.0, targets.squares / total_weight_ - mean * mean);
  constant_loss_ = options.likelihood->constant_loss(mean, variance);
}

ParameterVector Objective::to_parameter_vector(const RowSums& sums) const {
  ParameterVector result;
  result.features = sums.features;
  if (options_.shape.diagonal != Diagonal::tied) {
    // The prediction contains (squares_j - (A diag(signs) A')_jj) x_j^2, with squares_j = 0 for a zero diagonal.
    result.features.rightCols(options_.shape.rank) -=
        2 * (sums.squares.asDiagonal() * parameters_.A * parameters_.signs.asDiagonal());
    if (options_.shape.diagonal == Diagonal::free) result.squares = sums.squares;
  }
  if (options_.shape.intercept) result.intercept = sums.intercept;
  if (!options_.shape.linear) result.features.col(0).setZero();
  return result;
}

double Objective::evaluate_at(const SignedFactors<double>& parameters) {
  parameters_ = parameters;
  ++passes_;
  const RowSums sums = equations_->gradient(parameters_);
  total_curvature_ = sums.curvature;
  projection_grams_ = sums.projection_grams;
  negative_gradient_ = to_parameter_vector(sums);
  return sums.loss / total_weight_;
}

ParameterVector Objective::curvature_product(const ParameterVector& t) const {
  ++passes_;
  return to_parameter_vector(equations_->curvature_product(parameters_, t));
}

ParameterVector Objective::solve_dual(const ParameterVector& D, const ParameterVector& offset) const {
  passes_ += 2;  // the equations, and J'e of their solution
  ParameterVector t = to_parameter_vector(equations_->solve_dual(parameters_, D, offset));
  t.add(-1, offset);
  t.intercept /= D.intercept;
  t.features.array() /= D.features.array();
  t.squares.array() /= D.squares.array();
  return t;
}

}  // namespace dyad
