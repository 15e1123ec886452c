#include "linalg/cholesky.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "linalg/gemm.h"

namespace dyad {
namespace {

/// Size below which the factorization uses scalar loops. Their operations are O(n) of the total, so that the size
/// affects the run time only.
constexpr Index max_scalar_size = 32;

/// Cholesky factor and inverse of a small matrix, by columns.
bool factorize_small(double* A, double* T, Index n, Index stride) {
  for (Index j = 0; j < n; ++j) {
    double pivot = A[j * stride + j];
    for (Index k = 0; k < j; ++k) pivot -= A[j * stride + k] * A[j * stride + k];
    if (!(pivot > 0)) return false;
    const double root = std::sqrt(pivot);
    A[j * stride + j] = root;
    for (Index i = j + 1; i < n; ++i) {
      double sum = A[i * stride + j];
      for (Index k = 0; k < j; ++k) sum -= A[i * stride + k] * A[j * stride + k];
      A[i * stride + j] = sum / root;
    }
  }
  for (Index j = 0; j < n; ++j) {
    T[j * stride + j] = 1 / A[j * stride + j];
    for (Index i = j + 1; i < n; ++i) {
      double sum = 0;
      for (Index k = j; k < i; ++k) sum -= A[i * stride + k] * T[k * stride + j];
      T[i * stride + j] = sum / A[i * stride + i];
    }
  }
  return true;
}

/// Size below which products with triangular matrices are computed as products with full ones. Halving it once more
/// saves at most an eighth of the operations, at the lower rate of smaller products.
constexpr Index max_full_triangle = 192;

/// C (m x n) = alpha B T' with T lower triangular (n x n). With T = [T11; T21 T22]: C1 = B1 T11', C2 = B1 T21' + B2
/// T22'.
void multiply_by_transpose(Index m, Index n, const double* B, const double* T, Index stride, double* C,
                           Index stride_C) {
  if (n <= max_full_triangle)
    return gemm<double>(m, n, n, 1, {B, stride}, {T, stride, Operation::transpose}, 0, C, stride_C);
  const Index head = n / 2;
  multiply_by_transpose(m, head, B, T, stride, C, stride_C);
  multiply_by_transpose(m, n - head, B + head, T + head * stride + head, stride, C + head, stride_C);
  gemm<double>(m, n - head, head, 1, {B, stride}, {T + head * stride, stride, Operation::transpose}, 1, C + head,
               stride_C);
}

/// C (m x n) = -B T with T lower triangular (n x n): C1 = -B1 T11 - B2 T21, C2 = -B2 T22.
void multiply_from_right(Index m, Index n, const double* B, const double* T, Index stride, double* C, Index stride_C) {
  if (n <= max_full_triangle) return gemm<double>(m, n, n, -1, {B, stride}, {T, stride}, 0, C, stride_C);
  const Index head = n / 2;
  multiply_from_right(m, head, B, T, stride, C, stride_C);
  multiply_from_right(m, n - head, B + head, T + head * stride + head, stride, C + head, stride_C);
  gemm<double>(m, head, n - head, -1, {B + head, stride}, {T + head * stride, stride}, 1, C, stride_C);
}

/// C (m x n) = T B with T lower triangular (m x m): C1 = T11 B1, C2 = T21 B1 + T22 B2.
void multiply_from_left(Index m, Index n, const double* T, const double* B, Index stride_B, double* C, Index stride) {
  if (m <= max_full_triangle) return gemm<double>(m, n, m, 1, {T, stride}, {B, stride_B}, 0, C, stride);
  const Index head = m / 2;
  multiply_from_left(head, n, T, B, stride_B, C, stride);
  multiply_from_left(m - head, n, T + head * stride + head, B + head * stride_B, stride_B, C + head * stride, stride);
  gemm<double>(m - head, n, head, 1, {T + head * stride, stride}, {B, stride_B}, 1, C + head * stride, stride);
}

/// C (n x n, lower triangle) -= B B' with B n x k. Numbers above the diagonal of C within blocks of
/// `max_full_triangle` change too.
void subtract_gram(Index n, Index k, const double* B, Index stride, double* C) {
  if (n <= max_full_triangle)
    return gemm<double>(n, n, k, -1, {B, stride}, {B, stride, Operation::transpose}, 1, C, stride);
  const Index head = n / 2;
  subtract_gram(head, k, B, stride, C);
  subtract_gram(n - head, k, B + head * stride, stride, C + head * stride + head);
  gemm<double>(n - head, head, k, -1, {B + head * stride, stride}, {B, stride, Operation::transpose}, 1,
               C + head * stride, stride);
}

/// With A = [A11; A21 A22]: L11 and T11 = L11^-1 by recursion, L21 = A21 T11', A22 -= L21 L21', L22 and T22 by
/// recursion, T21 = -T22 L21 T11. `scratch` has at least n^2 / 4 numbers.
bool factorize(double* A, double* T, Index n, Index stride, double* scratch) {
  if (n <= max_scalar_size) return factorize_small(A, T, n, stride);
  const Index head = n / 2;
  const Index tail = n - head;
  double* A21 = A + head * stride;
  double* A22 = A21 + head;
  double* T21 = T + head * stride;
  double* T22 = T21 + head;
  if (!factorize(A, T, head, stride, scratch)) return false;
  multiply_by_transpose(tail, head, A21, T, stride, scratch, head);
  for (Index i = 0; i < tail; ++i) std::copy_n(scratch + i * head, head, A21 + i * stride);
  subtract_gram(tail, head, A21, stride, A22);
  if (!factorize(A22, T22, tail, stride, scratch)) return false;
  multiply_from_right(tail, head, A21, T, stride, scratch, head);
  multiply_from_left(tail, head, T22, scratch, head, T21, stride);
  return true;
}

}  // namespace

PivotedCholesky::PivotedCholesky(Matrix<double> C) : factor_(Matrix<double>::Zero(C.rows(), C.rows())) {
  // Pivots below this share of the largest diagonal element are rounding errors of sums of C.rows() products.
  constexpr double min_pivot_share = 1e-10;
  Vector<double> diagonal = C.diagonal();
  const double smallest = min_pivot_share * (C.rows() == 0 ? 0 : diagonal.maxCoeff());
  Index rank = 0;
  for (; rank < C.rows(); ++rank) {
    Index pivot = 0;
    const double value = diagonal.maxCoeff(&pivot);
    if (!(value > smallest)) break;
    pivots_.push_back(pivot);
    auto column = factor_.col(rank);
    column.noalias() = C.col(pivot) - factor_.leftCols(rank) * factor_.row(pivot).head(rank).transpose();
    for (const Index earlier : pivots_)
      if (earlier != pivot) column[earlier] = 0;
    column /= std::sqrt(value);
    diagonal -= column.cwiseAbs2();
    diagonal[pivot] = 0;
  }
  factor_.conservativeResize(Eigen::NoChange, rank);
}

Matrix<double> PivotedCholesky::solve(const Matrix<double>& B) const {
  const Index rank = factor_.cols();
  Matrix<double> triangle(rank, rank);
  Matrix<double> X(rank, B.cols());
  for (Index i = 0; i < rank; ++i) {
    triangle.row(i) = factor_.row(pivots_[static_cast<std::size_t>(i)]);
    X.row(i) = B.row(pivots_[static_cast<std::size_t>(i)]);
  }
  triangle.triangularView<Eigen::Lower>().solveInPlace(X);
  return X;
}

bool factorize_and_invert(RowMajorMatrix<double>& A, RowMajorMatrix<double>& inverse) {
  const Index n = A.rows();
  inverse.setZero(n, n);
  std::vector<double> scratch(static_cast<std::size_t>((n / 2 + 1) * (n / 2 + 1)));
  return n == 0 || factorize(A.data(), inverse.data(), n, n, scratch.data());
}

}  // namespace dyad
