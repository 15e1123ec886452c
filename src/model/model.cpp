#include <dyad/model.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "linalg/matrix.h"
#include "model/forward_pass.h"
#include "model/sides.h"

namespace dyad {

template <typename Scalar>
Model<Scalar>::Model(Index dim, Index rank, Index left)
    : left_dim(left),
      weights(static_cast<std::size_t>(dim)),
      factors(static_cast<std::size_t>(dim * rank)),
      spectrum(static_cast<std::size_t>(rank)) {}

template <typename Scalar>
Scalar Model<Scalar>::interaction(Index i, Index j) const {
  const Sides sides(*this);
  if (i < 0 || j < 0 || i >= sides.left_count() || j >= sides.right_count())
    throw std::invalid_argument("interaction(i, j): i must lie in [0, " + std::to_string(sides.left_count()) +
                                ") and j in [0, " + std::to_string(sides.right_count()) +
                                "), got i = " + std::to_string(i) + ", j = " + std::to_string(j));
  const auto U = as_row_major(factors, dim(), rank());
  return (sides.left(U).row(i).array() * sides.right(U).row(j).array() * as_vector(spectrum).transpose().array()).sum();
}

template <typename Scalar>
Scalar Model<Scalar>::mean_interaction() const {
  return is_bilinear() ? Scalar(0) : as_vector(spectrum).sum() + as_vector(squares).sum();
}

template <typename Scalar>
bool Model<Scalar>::is_finite() const {
  return std::isfinite(intercept) && as_vector(weights).allFinite() && as_vector(factors).allFinite() &&
         as_vector(spectrum).allFinite() && as_vector(squares).allFinite();
}

template <typename Scalar>
void Model<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const {
  if (rows.dim() != dim())
    throw std::invalid_argument("rows must have the " + std::to_string(dim()) + " features of the model, got " +
                                std::to_string(rows.dim()));
  if (static_cast<Index>(predictions.size()) != rows.count())
    throw std::invalid_argument("predictions must have one entry for each of the " + std::to_string(rows.count()) +
                                " rows, got " + std::to_string(predictions.size()));
  ForwardPass<Scalar>(*this).predict(rows, predictions);
}

template struct Model<float>;
template struct Model<double>;

}  // namespace dyad
