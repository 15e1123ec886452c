#include <dyad/model.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/linear_algebra.h"
#include "model/prediction.h"
#include "rows/products.h"

namespace dyad {

template <typename Scalar>
Model<Scalar>::Model(Index dim, Index rank)
    : weights(static_cast<std::size_t>(dim)),
      factors(static_cast<std::size_t>(dim * rank)),
      spectrum(static_cast<std::size_t>(rank)) {}

template <typename Scalar>
Scalar Model<Scalar>::interaction(Index i, Index j) const {
  if (i < 0 || j < 0 || i >= dim() || j >= dim())
    throw std::invalid_argument("features must lie in [0, " + std::to_string(dim()) + ")");
  const auto U = as_tall(factors, dim(), rank());
  return (U.row(i).array() * U.row(j).array() * as_vector(spectrum).transpose().array()).sum();
}

template <typename Scalar>
Scalar Model<Scalar>::trace() const {
  return as_vector(spectrum).sum();
}

template <typename Scalar>
bool Model<Scalar>::is_finite() const {
  return std::isfinite(intercept) && as_vector(weights).allFinite() && as_vector(factors).allFinite() &&
         as_vector(spectrum).allFinite();
}

template <typename Scalar>
void Model<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const {
  if (rows.dim() != dim())
    throw std::invalid_argument("the model has " + std::to_string(dim()) + " features, the rows have " +
                                std::to_string(rows.dim()));
  if (static_cast<Index>(predictions.size()) != rows.count())
    throw std::invalid_argument("predictions must hold one number per row");
  const Index chunk = std::min(cached_rows(rows), rows.count());
  std::vector<Scalar> linear(static_cast<std::size_t>(chunk));
  std::vector<Scalar> projected(static_cast<std::size_t>(chunk * rank()));
  for (Index first = 0; first < rows.count(); first += chunk) {
    const Rows<Scalar> part = rows.slice(first, std::min(chunk, rows.count() - first));
    project(part, weights.data(), 1, linear.data());
    project(part, factors.data(), rank(), projected.data());
    for (Index i = 0; i < part.count(); ++i)
      predictions[static_cast<std::size_t>(first + i)] =
          predict_row(*this, projected.data() + i * rank(), linear[static_cast<std::size_t>(i)]);
  }
}

template struct Model<float>;
template struct Model<double>;

}  // namespace dyad
