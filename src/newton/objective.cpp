#include "newton/objective.h"

#include <algorithm>
#include <cmath>

namespace dyad {

template <typename Scalar>
SignedFactors<Scalar> moved(SignedFactors<Scalar> parameters, const Direction<Scalar>& step) {
  parameters.intercept += step.intercept;
  parameters.weights += step.features.col(0);
  parameters.A += step.features.rightCols(parameters.rank());
  if (parameters.squares.size() > 0) parameters.squares += step.squares;
  return parameters;
}

template <typename Scalar>
Objective<Scalar>::Objective(std::shared_ptr<const RowLooks<Scalar>> looks, const NewtonOptions& options)
    : looks_(std::move(looks)), options_(options) {
  const TargetSums targets = looks_->targets();
  total_weight_ = targets.weight;
  if (!(total_weight_ > 0)) return;
  const double mean = targets.sum / total_weight_;
  const double variance = std::max(0.0, targets.squares / total_weight_ - mean * mean);
  constant_loss_ = options.likelihood->constant_loss(mean, variance);
}

template <typename Scalar>
Direction<Scalar> Objective<Scalar>::direction_of(const RowSums<Scalar>& sums) const {
  Direction<Scalar> result;
  result.features = sums.features;
  if (options_.shape.diagonal != Diagonal::tied) {
    result.features.rightCols(options_.shape.rank) -=
        2 * (sums.squares.asDiagonal() * parameters_.A * parameters_.signs.asDiagonal());
    if (options_.shape.diagonal == Diagonal::free) result.squares = sums.squares;
  }
  if (options_.shape.intercept) result.intercept = static_cast<Scalar>(sums.intercept);
  if (!options_.shape.linear) result.features.col(0).setZero();
  return result;
}

template <typename Scalar>
double Objective<Scalar>::move_to(const SignedFactors<Scalar>& parameters) {
  parameters_ = parameters;
  ++products_;
  const RowSums<Scalar> sums = looks_->slopes(parameters_);
  total_curvature_ = sums.curvature;
  products_of_sides_ = sums.products_of_sides;
  descent_ = direction_of(sums);
  return sums.loss / total_weight_;
}

template <typename Scalar>
Direction<Scalar> Objective<Scalar>::curvature_times(const Direction<Scalar>& t) const {
  ++products_;
  return direction_of(looks_->bends(parameters_, t));
}

template <typename Scalar>
Direction<Scalar> Objective<Scalar>::solve_dual(const Direction<Scalar>& D, const Direction<Scalar>& offset) const {
  products_ += 2;
  Direction<Scalar> t = direction_of(looks_->dual_sums(parameters_, D, offset));
  t.add(Scalar(-1), offset);
  t.intercept /= D.intercept;
  t.features.array() /= D.features.array();
  t.squares.array() /= D.squares.array();
  return t;
}

template SignedFactors<float> moved(SignedFactors<float>, const Direction<float>&);
template SignedFactors<double> moved(SignedFactors<double>, const Direction<double>&);
template class Objective<float>;
template class Objective<double>;

}  // namespace dyad
