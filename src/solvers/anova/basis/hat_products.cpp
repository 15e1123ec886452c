#include "solvers/anova/basis/hat_products.h"

#include <type_traits>

#include "linalg/simd.h"

namespace dyad {
namespace {

/// Two adjacent doubles, at any address.
typedef double Pair2 __attribute__((vector_size(16), aligned(8)));

Pair2* at(double* address) { return reinterpret_cast<Pair2*>(address); }

/// The products of the basis functions of a row that are not 0. Their coefficients are base, base + 1 and, for pairs,
/// base + stride and base + stride + 1. Coefficients beyond the end have the weight 0; tables have padding for them.
struct Products {
  Index base = 0;
  double weights[4] = {0, 0, 0, 0};
};

template <bool is_pair>
inline Products products_of(const BlockRows& block, std::size_t i) {
  const double x0 = block.first->first[i];
  const double x1 = block.first->second[i];
  if constexpr (!is_pair) return {block.first->index[i], {x0, x1, 0, 0}};
  const double y0 = block.second->first[i];
  const double y1 = block.second->second[i];
  return {block.first->index[i] * block.second_size + block.second->index[i], {x0 * y0, x0 * y1, x1 * y0, x1 * y1}};
}

/// Which products of a block can differ from 0. Indicator axes have one basis function per row.
enum class Shape {
  one,     ///< weights[0]
  row,     ///< weights[0] and [1]: the last axis is not an indicator
  column,  ///< weights[0] and [2]: the first axis of a pair is not an indicator
  square,  ///< all four
};

Shape shape_of(const BlockRows& block) {
  if (block.second == nullptr) return block.first->is_indicator ? Shape::one : Shape::row;
  if (block.second->is_indicator) return block.first->is_indicator ? Shape::one : Shape::column;
  return block.first->is_indicator ? Shape::row : Shape::square;
}

/// Adds the outer products of the rows to the padded table.
template <Shape a_shape, Shape b_shape>
DYAD_TARGET_CLONES void add_outer_products(const BlockRows& a, const BlockRows& b, const double* weights, double* table,
                                           Index stride) {
  const auto count = static_cast<std::size_t>(a.first->count());
  const Index offsets[4] = {0, stride, a.second_size * stride, (a.second_size + 1) * stride};
  const bool is_a_pair = a.second != nullptr;
  const bool is_b_pair = b.second != nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const Products left = is_a_pair ? products_of<true>(a, i) : products_of<false>(a, i);
    const Products right = is_b_pair ? products_of<true>(b, i) : products_of<false>(b, i);
    const double weight = weights == nullptr ? 1 : weights[i];
    double* cell = table + left.base * stride + right.base;
    const Pair2 head = {right.weights[0], right.weights[1]};
    const Pair2 tail = {right.weights[2], right.weights[3]};
    const auto add_row = [&](int u) {
      const double x = weight * left.weights[u];
      const Pair2 scale = {x, x};
      double* target = cell + offsets[u];
      if constexpr (b_shape == Shape::one || b_shape == Shape::column)
        *target += x * right.weights[0];
      else
        *at(target) += scale * head;
      if constexpr (b_shape == Shape::column) target[b.second_size] += x * right.weights[2];
      if constexpr (b_shape == Shape::square) *at(target + b.second_size) += scale * tail;
    };
    add_row(0);
    if constexpr (a_shape == Shape::row || a_shape == Shape::square) add_row(1);
    if constexpr (a_shape == Shape::column || a_shape == Shape::square) add_row(2);
    if constexpr (a_shape == Shape::square) add_row(3);
  }
}

/// Calls visit with a shape as compile-time constant.
template <typename Visit>
void with_shape(Shape shape, Visit&& visit) {
  switch (shape) {
    case Shape::one:
      return visit(std::integral_constant<Shape, Shape::one>());
    case Shape::row:
      return visit(std::integral_constant<Shape, Shape::row>());
    case Shape::column:
      return visit(std::integral_constant<Shape, Shape::column>());
    case Shape::square:
      return visit(std::integral_constant<Shape, Shape::square>());
  }
}

/// Number of coefficients including the padding.
Index padded_size(const BlockRows& block) {
  return block.second == nullptr ? block.first_size + 1 : (block.first_size + 1) * block.second_size + 2;
}

template <typename Visit>
void for_each_product(const BlockRows& block, Visit&& visit) {
  const auto count = static_cast<std::size_t>(block.first->count());
  for (std::size_t i = 0; i < count; ++i)
    visit(i, block.second == nullptr ? products_of<false>(block, i) : products_of<true>(block, i));
}

}  // namespace

RowMajorMatrix<double> cross_gram(const BlockRows& a, const BlockRows& b, std::span<const double> weights) {
  RowMajorMatrix<double> table = RowMajorMatrix<double>::Zero(padded_size(a), padded_size(b));
  const double* w = weights.empty() ? nullptr : weights.data();
  with_shape(shape_of(a), [&](auto a_shape) {
    with_shape(shape_of(b),
               [&](auto b_shape) { add_outer_products<a_shape(), b_shape()>(a, b, w, table.data(), table.cols()); });
  });
  return table.topLeftCorner(a.size(), b.size());
}

Vector<double> basis_moments(const BlockRows& block, std::span<const double> z) {
  Vector<double> sums = Vector<double>::Zero(padded_size(block));
  double* out = sums.data();
  const Index stride = block.second_size;
  for_each_product(block, [&](std::size_t i, const Products& products) {
    out[products.base] += z[i] * products.weights[0];
    out[products.base + 1] += z[i] * products.weights[1];
    if (block.second == nullptr) return;
    out[products.base + stride] += z[i] * products.weights[2];
    out[products.base + stride + 1] += z[i] * products.weights[3];
  });
  return sums.head(block.size());
}

void add_fitted(const BlockRows& block, const Vector<double>& coefficients, std::span<double> out) {
  Vector<double> padded = Vector<double>::Zero(padded_size(block));
  padded.head(block.size()) = coefficients;
  const Index stride = block.second_size;
  for_each_product(block, [&](std::size_t i, const Products& products) {
    const double* c = padded.data() + products.base;
    double sum = c[0] * products.weights[0] + c[1] * products.weights[1];
    if (block.second != nullptr) sum += c[stride] * products.weights[2] + c[stride + 1] * products.weights[3];
    out[i] += sum;
  });
}

void add_basis_rows(const BlockRows& block, Index first, const RowMajorMatrix<double>& L,
                    Eigen::Ref<RowMajorMatrix<double>> out) {
  const Index offsets[4] = {0, 1, block.second_size, block.second_size + 1};
  for (Index i = 0; i < out.rows(); ++i) {
    const auto row = static_cast<std::size_t>(first + i);
    const Products products = block.second == nullptr ? products_of<false>(block, row) : products_of<true>(block, row);
    for (int u = 0; u < 4; ++u)
      if (products.weights[u] != 0) out.row(i) += products.weights[u] * L.row(products.base + offsets[u]);
  }
}

}  // namespace dyad
