#include <dyad/model.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/linear_algebra.h"
#include "model/prediction.h"
#include "model/sides.h"
#include "rows/products.h"

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
    throw std::invalid_argument("features must lie in [0, " + std::to_string(sides.left_count()) + ") and [0, " +
                                std::to_string(sides.right_count()) + ")");
  const auto U = as_tall(factors, dim(), rank());
  return (sides.left(U).row(i).array() * sides.right(U).row(j).array() * as_vector(spectrum).transpose().array()).sum();
}

template <typename Scalar>
Scalar Model<Scalar>::mean_of_interactions() const {
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
    throw std::invalid_argument("the model has " + std::to_string(dim()) + " features, the rows have " +
                                std::to_string(rows.dim()));
  if (static_cast<Index>(predictions.size()) != rows.count())
    throw std::invalid_argument("predictions must hold one number per row");
  const Sides sides(*this);
  const Scalar* right_factors = factors.data() + sides.right_first() * rank();
  const Index chunk = std::min(cached_rows(rows), rows.count());
  Vector<Scalar> linear(chunk);
  Vector<Scalar> square = Vector<Scalar>::Zero(chunk);
  Tall<Scalar> left(chunk, rank());
  Tall<Scalar> right(is_bilinear() ? chunk : 0, rank());
  for (Index first = 0; first < rows.count(); first += chunk) {
    const Rows<Scalar> part = rows.slice(first, std::min(chunk, rows.count() - first));
    project(part, weights.data(), 1, linear.data());
    project(sides.left(part), factors.data(), rank(), left.data());
    if (is_bilinear()) project(sides.right(part), right_factors, rank(), right.data());
    if (!squares.empty()) project_squares(part, squares.data(), square.data());
    for (Index i = 0; i < part.count(); ++i) {
      const Scalar* Lx = left.data() + i * rank();
      const Scalar* Rx = is_bilinear() ? right.data() + i * rank() : Lx;
      predictions[static_cast<std::size_t>(first + i)] = predict_row(*this, Lx, Rx, linear[i]) + square[i];
    }
  }
}

template struct Model<float>;
template struct Model<double>;

}  // namespace dyad
