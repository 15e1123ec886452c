#include <dyad/shape.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace dyad {

ModelShape ModelShape::of(Kind kind) {
  ModelShape shape;
  shape.linear = shape.intercept = kind == Kind::gfm || kind == Kind::bilinear;
  shape.positive = kind == Kind::phase;
  if (kind == Kind::phase) shape.rank = 1;
  return shape;
}

Index ModelShape::max_rank() const { return is_bilinear() ? std::min(left_dim, dim - left_dim) : dim; }

Index ModelShape::unknowns() const {
  // Dimension of the set of rank-k matrices: k (m + n - k) for m x n with m + n = dim, k d - k (k - 1) / 2 for
  // symmetric d x d.
  const Index matrix_unknowns = is_bilinear() ? rank * (dim - rank) : rank * dim - rank * (rank - 1) / 2;
  return matrix_unknowns + (linear ? dim : 0) + (diagonal == Diagonal::free ? dim : 0) + (intercept ? 1 : 0);
}

void ModelShape::validate() const {
  if (dim < 1 || dim > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("dim must lie in [1, 2^31), got " + std::to_string(dim));
  if (left_dim < 0 || left_dim >= dim)
    throw std::invalid_argument("left_dim must lie in [0, dim) = [0, " + std::to_string(dim) + "), got " +
                                std::to_string(left_dim));
  if (rank < 1 || rank > max_rank())
    throw std::invalid_argument("rank must lie in [1, " + std::to_string(max_rank()) + "], got " +
                                std::to_string(rank));
  if (is_bilinear() && (positive || diagonal != Diagonal::tied))
    throw std::invalid_argument("a bilinear model (left_dim > 0) requires positive = false and diagonal = tied");
}

}  // namespace dyad
