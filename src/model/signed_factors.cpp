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
SignedFactors<Scalar> SignedFactors<Scalar>::of(const Model<Scalar>& model, Diagonal diagonal, Scalar least) {
  SignedFactors parts;
  parts.left_dim = model.left_dim;
  parts.diagonal = diagonal;
  parts.intercept = model.intercept;
  parts.weights = as_vector(model.weights);
  const Vector<Scalar> strengths = as_vector(model.spectrum).cwiseAbs();
  const Scalar floor = least * (strengths.size() > 0 ? strengths.maxCoeff() : Scalar(0));
  parts.signs = as_vector(model.spectrum).unaryExpr([](Scalar s) { return s < 0 ? Scalar(-1) : Scalar(1); });
  parts.A = as_tall(model.factors, model.dim(), model.rank()) * strengths.cwiseMax(floor).cwiseSqrt().asDiagonal();
  if (diagonal == Diagonal::free) {
    parts.squares = diagonal_of_interactions(model);
    if (!model.squares.empty()) parts.squares += as_vector(model.squares);
  }
  return parts;
}

template <typename Scalar>
Model<Scalar> SignedFactors<Scalar>::model() const {
  Model<Scalar> model(dim(), rank(), left_dim);
  model.intercept = intercept;
  as_vector(model.weights) = weights;
  set_interactions(model, best_rank_k<Scalar>(Sides(model), A, signs.asDiagonal(), rank(), Keep::largest));
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
  const Vector<Scalar> of_squares = square_coefficients();
  ForwardPass<Scalar>(*this, of_squares).predict(rows, predictions);
}

template struct SignedFactors<float>;
template struct SignedFactors<double>;
template Vector<float> alternating_signs(Index);
template Vector<double> alternating_signs(Index);

}  // namespace dyad
