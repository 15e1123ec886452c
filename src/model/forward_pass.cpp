#include "model/forward_pass.h"

#include <algorithm>

#include "linalg/row_products.h"

namespace dyad {

template <typename Scalar>
void ForwardPass<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const {
  const Index block_size = std::min(rows_per_cache_block(rows), rows.count());
  Vector<Scalar> linear(block_size);
  Vector<Scalar> square = Vector<Scalar>::Zero(block_size);
  RowMajorMatrix<Scalar> left(block_size, rank_);
  RowMajorMatrix<Scalar> right(sides_.is_bilinear() ? block_size : 0, rank_);
  for (Index first = 0; first < rows.count(); first += block_size) {
    const Rows<Scalar> block = rows.slice(first, std::min(block_size, rows.count() - first));
    project(block, weights_, 1, linear.data());
    project(sides_.left(block), factors_, rank_, left.data());
    if (sides_.is_bilinear())
      project(sides_.right(block), factors_ + sides_.right_first() * rank_, rank_, right.data());
    if (squares_ != nullptr) project_squares(block, squares_, square.data());
    for (Index i = 0; i < block.count(); ++i) {
      const Scalar* Ux = left.data() + i * rank_;
      const Scalar* Vz = sides_.is_bilinear() ? right.data() + i * rank_ : Ux;
      predictions[static_cast<std::size_t>(first + i)] = combine(Ux, Vz, linear[i], square[i]);
    }
  }
}

template class ForwardPass<float>;
template class ForwardPass<double>;

}  // namespace dyad
