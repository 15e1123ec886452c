#include "linalg/row_products.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include <Eigen/Core>

#include "linalg/gemm.h"
#include "linalg/simd.h"

namespace dyad {
namespace {

/// Largest width for which products with dense rows are matrix-vector products, column by column. BLAS would pack the
/// rows for each product, which takes as many operations as the product itself at this width.
constexpr Index max_narrow_width = 2;

/// Columns of a row-major matrix, and dense rows as an Eigen matrix.
template <typename Number>
auto column_of(Number* matrix, Index rows, Index width, Index c) {
  using Column = Eigen::Matrix<std::remove_const_t<Number>, Eigen::Dynamic, 1>;
  using MaybeConst = std::conditional_t<std::is_const_v<Number>, const Column, Column>;
  return Eigen::Map<MaybeConst, Eigen::Unaligned, Eigen::InnerStride<>>(matrix + c, rows, Eigen::InnerStride<>(width));
}
template <typename Number>
auto as_matrix(const Rows<Number>& rows) {
  using RowMajor = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor, Eigen::Unaligned, Eigen::OuterStride<>>(rows.row(0), rows.count(), rows.dim(),
                                                                            Eigen::OuterStride<>(rows.stride()));
}

/// sum_j q_j x_j^2 of a dense row.
template <typename Number, typename Scalar>
Number dot_squares(const Number* q, const Scalar* x, Index dim) {
  const Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>> row(x, dim);
  return (Eigen::Map<const Eigen::Array<Number, Eigen::Dynamic, 1>>(q, dim) * row.template cast<Number>().square())
      .sum();
}

/// Calls visit(first, block) for blocks of dense rows, converted to `Number`. `first` is the index of the first row of
/// the block. Rows that need no conversion are one block.
template <typename Number, typename Scalar, typename Visit>
void for_each_block(const Rows<Scalar>& rows, Visit&& visit) {
  if constexpr (std::is_same_v<Scalar, Number>) {
    visit(Index{0}, rows);
  } else {
    thread_local std::vector<Number> converted;  // malloc would return memory of this size to the system each time
    const Index max_rows = std::min(max_converted_rows, rows_per_cache_block(rows, sizeof(Number)));
    for (Index first = 0; first < rows.count(); first += max_rows) {
      const Index count = std::min(max_rows, rows.count() - first);
      converted.resize(static_cast<std::size_t>(count * rows.dim()));
      for (Index i = 0; i < count; ++i)
        std::copy_n(rows.row(first + i), rows.dim(), converted.begin() + i * rows.dim());
      visit(first, Rows<Number>::dense(converted, rows.dim()));
    }
  }
}

/// Prefetches the `width` numbers of each feature of sparse row i + prefetch_distance_rows.
template <typename Scalar, typename Number>
void prefetch_features(const Rows<Scalar>& rows, Index i, const Number* numbers, Index width) {
  // Controls how early the memory accesses of a row start. Sensitivity: docs/constants.md.
  constexpr Index prefetch_distance_rows = 8;
  if (i + prefetch_distance_rows < rows.count())
    rows.for_each_entry(i + prefetch_distance_rows,
                        [&](Index j, Scalar) { prefetch_range(numbers + j * width, width); });
}

}  // namespace

template <typename Scalar, typename Number>
void project(const Rows<Scalar>& rows, const Number* B, Index width, Number* out) {
  if (rows.count() == 0 || width == 0) return;
  if (!rows.is_sparse()) {
    for_each_block<Number>(rows, [&](Index first, const Rows<Number>& block) {
      if (width <= max_narrow_width) {
        for (Index c = 0; c < width; ++c)
          column_of(out + first * width, block.count(), width, c).noalias() =
              as_matrix(block) * column_of(B, block.dim(), width, c);
        return;
      }
      gemm<Number>(block.count(), width, block.dim(), 1, {block.row(0), block.stride()}, {B, width}, 0,
                   out + first * width, width);
    });
    return;
  }
  std::fill(out, out + rows.count() * width, Number(0));
  for (Index i = 0; i < rows.count(); ++i) {
    prefetch_features(rows, i, B, width);
    Number* projected = out + i * width;
    rows.for_each_entry(i, [&](Index j, Number x) {
      const Number* feature = B + j * width;
      for (Index c = 0; c < width; ++c) projected[c] += x * feature[c];
    });
  }
}

template <typename Scalar, typename Number>
void add_back_projection(const Rows<Scalar>& rows, const Number* C, Index width, Number* out) {
  if (rows.count() == 0 || width == 0) return;
  if (!rows.is_sparse()) {
    for_each_block<Number>(rows, [&](Index first, const Rows<Number>& block) {
      if (width <= max_narrow_width) {
        for (Index c = 0; c < width; ++c)
          column_of(out, block.dim(), width, c).noalias() +=
              as_matrix(block).transpose() * column_of(C + first * width, block.count(), width, c);
        return;
      }
      gemm<Number>(block.dim(), width, block.count(), 1, {block.row(0), block.stride(), Operation::transpose},
                   {C + first * width, width}, 1, out, width);
    });
    return;
  }
  for (Index i = 0; i < rows.count(); ++i) {
    prefetch_features(rows, i, out, width);
    const Number* projected = C + i * width;
    rows.for_each_entry(i, [&](Index j, Number x) {
      Number* feature = out + j * width;
      for (Index c = 0; c < width; ++c) feature[c] += x * projected[c];
    });
  }
}

template <typename Scalar, typename Number>
void project_squares(const Rows<Scalar>& rows, const Number* q, Number* out) {
  for (Index i = 0; i < rows.count(); ++i) {
    if (!rows.is_sparse()) {
      out[i] = dot_squares(q, rows.row(i), rows.dim());
      continue;
    }
    Number sum = 0;
    rows.for_each_entry(i, [&](Index j, Number x) { sum += q[j] * x * x; });
    out[i] = sum;
  }
}

template <typename Scalar, typename Number>
void add_back_projected_squares(const Rows<Scalar>& rows, const Number* c, Index stride, Number* out) {
  for (Index i = 0; i < rows.count(); ++i) {
    const Number weight = c[i * stride];
    rows.for_each_entry(i, [&](Index j, Number x) { out[j] += weight * x * x; });
  }
}

template <typename Scalar>
Index rows_per_cache_block(const Rows<Scalar>& rows, std::size_t number_bytes) {
  // Second-level cache of x86-64 cores: at least 256 KiB. Sensitivity: docs/constants.md.
  constexpr Index block_bytes = Index{256} << 10;
  constexpr Index min_block_rows = 16;  // minimum for wide rows, whose block may exceed the cache
  // Size of a block of sparse rows, whose bytes are unknown here. Sensitivity: docs/constants.md.
  constexpr Index sparse_block_rows = 1024;
  if (rows.is_sparse() || rows.dim() == 0) return sparse_block_rows;
  return std::max(min_block_rows, block_bytes / (rows.dim() * static_cast<Index>(number_bytes)));
}

template void project(const Rows<float>&, const float*, Index, float*);
template void add_back_projection(const Rows<float>&, const float*, Index, float*);
template void project_squares(const Rows<float>&, const float*, float*);
template void add_back_projected_squares(const Rows<float>&, const float*, Index, float*);
template void project(const Rows<float>&, const double*, Index, double*);
template void add_back_projection(const Rows<float>&, const double*, Index, double*);
template void project_squares(const Rows<float>&, const double*, double*);
template void add_back_projected_squares(const Rows<float>&, const double*, Index, double*);
template void project(const Rows<double>&, const double*, Index, double*);
template void add_back_projection(const Rows<double>&, const double*, Index, double*);
template void project_squares(const Rows<double>&, const double*, double*);
template void add_back_projected_squares(const Rows<double>&, const double*, Index, double*);
template Index rows_per_cache_block(const Rows<float>&, std::size_t);
template Index rows_per_cache_block(const Rows<double>&, std::size_t);

}  // namespace dyad
