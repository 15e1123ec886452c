#include "model/signed_factors.h"

#include <cmath>

#include "model/forward_pass.h"
#include "model/low_rank.h"
#include "model/sides.h"

namespace dyad {

template <typename Scalar>
Vector<Scalar> alternating_signs(Index rank) {
  Vector<Scalar> signs(rank);
  for (Index c = 0; c < rank; ++c) signs[c] = c % 2 == 0 ? Scalar(1) : Scalar(-1);
  return signs;
}

template <typename Scalar>
SignedFactors<Scalar> SignedFactors<Scalar>::of(const Model<Scalar>& model, Diagonal diagonal,
                                                Scalar min_relative_strength) {
  SignedFactors result;
  result.left_dim = model.left_dim;
  result.diagonal = diagonal;
  result.intercept = model.intercept;
  result.weights = as_vector(model.weights);
  const Vector<Scalar> strengths = as_vector(model.spectrum).cwiseAbs();
  const Scalar min_strength = min_relative_strength * (strengths.size() > 0 ? strengths.maxCoeff() : Scalar(0));
  result.signs = as_vector(model.spectrum).unaryExpr([](Scalar s) { return s < 0 ? Scalar(-1) : Scalar(1); });
  result.A = as_row_major(model.factors, model.dim(), model.rank()) *
             strengths.cwiseMax(min_strength).cwiseSqrt().asDiagonal();
  if (diagonal == Diagonal::free) {
    result.squares = diagonal_of_interactions(model);
    if (!model.squares.empty()) result.squares += as_vector(model.squares);
  }
  return result;
}

template <typename Scalar>
Model<Scalar> SignedFactors<Scalar>::model() const {
  Model<Scalar> model(dim(), 0, left_dim);
  model.intercept = intercept;
  as_vector(model.weights) = weights;
  set_interactions(model,
                   truncate_to_rank<Scalar>(Sides(model), A, signs.asDiagonal(), rank(), EigenvalueSelection::largest));
  if (diagonal == Diagonal::tied) return model;
  model.squares.resize(model.weights.size());
  as_vector(model.squares) = -diagonal_of_interactions(model);
  if (diagonal == Diagonal::free) as_vector(model.squares) += squares;
  return model;
}

template <typename Scalar>
void SignedFactors<Scalar>::scale_features(std::span<const double> factors) {
  for (Index j = 0; j < dim(); ++j) {
    const auto factor = static_cast<Scalar>(factors[static_cast<std::size_t>(j)]);
    weights[j] *= factor;
    A.row(j) *= factor;
    if (squares.size() > 0) squares[j] *= factor * factor;
  }
}

template <typename Scalar>
Vector<Scalar> SignedFactors<Scalar>::square_coefficients() const {
  Vector<Scalar> coefficients;
  if (diagonal != Diagonal::tied) coefficients = -(A.array().square().matrix() * signs);
  if (diagonal == Diagonal::free) coefficients += squares;
  return coefficients;
}

template <typename Scalar>
void SignedFactors<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const {
  const Vector<Scalar> coefficients = square_coefficients();
  ForwardPass<Scalar>(*this, coefficients).predict(rows, predictions);
}

template struct SignedFactors<float>;
template struct SignedFactors<double>;
template Vector<float> alternating_signs(Index);
template Vector<double> alternating_signs(Index);

}  // namespace dyad
