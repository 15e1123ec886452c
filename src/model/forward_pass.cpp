#include "model/forward_pass.h"

#include <algorithm>

#include "linalg/row_products.h"

namespace dyad {

template <typename Scalar>
void ForwardPass<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const {
  const Index chunk = std::min(cached_rows(rows), rows.count());
  Vector<Scalar> linear(chunk);
  Vector<Scalar> square = Vector<Scalar>::Zero(chunk);
  Tall<Scalar> left(chunk, rank_);
  Tall<Scalar> right(sides_.two() ? chunk : 0, rank_);
  for (Index first = 0; first < rows.count(); first += chunk) {
    const Rows<Scalar> part = rows.slice(first, std::min(chunk, rows.count() - first));
    project(part, weights_, 1, linear.data());
    project(sides_.left(part), factors_, rank_, left.data());
    if (sides_.two()) project(sides_.right(part), factors_ + sides_.right_first() * rank_, rank_, right.data());
    if (squares_ != nullptr) project_squares(part, squares_, square.data());
    for (Index i = 0; i < part.count(); ++i) {
      const Scalar* Lx = left.data() + i * rank_;
      const Scalar* Rx = sides_.two() ? right.data() + i * rank_ : Lx;
      predictions[static_cast<std::size_t>(first + i)] = combine(Lx, Rx, linear[i], square[i]);
    }
  }
}

template class ForwardPass<float>;
template class ForwardPass<double>;

}  // namespace dyad
