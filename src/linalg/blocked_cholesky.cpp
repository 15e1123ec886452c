#include "linalg/blocked_cholesky.h"

#include <algorithm>
#include <utility>

#include <Eigen/Cholesky>

#include "linalg/gemm.h"

namespace dyad {
namespace {

/// Rows per block. Eigen's decompositions and solutions of the diagonal blocks take n^2 times this number of
/// operations.
constexpr Index cholesky_block_rows = 32;

}  // namespace

Cholesky::Cholesky(RowMajorMatrix<double> K) : L_(std::move(K)) {
  const Index n = L_.rows();
  for (Index first = 0; first < n; first += cholesky_block_rows) {
    const Index count = std::min(cholesky_block_rows, n - first);
    const Index below = n - first - count;
    double* rows = L_.row(first).data();
    gemm<double>(n - first, count, first, -1, {rows, n}, {rows, n, Operation::transpose}, 1, rows + first, n);
    const Eigen::LLT<Matrix<double>> block(L_.block(first, first, count, count));
    if (block.info() != Eigen::Success) return;
    L_.block(first, first, count, count) = block.matrixLLT();
    auto panel = L_.block(first + count, first, below, count);
    if (below > 0) block.matrixL().transpose().solveInPlace<Eigen::OnTheRight>(panel);
  }
  is_positive_definite_ = true;
}

RowMajorMatrix<double> Cholesky::solve_lower(RowMajorMatrix<double> B) const {
  const Index n = L_.rows();
  const Index columns = B.cols();
  for (Index first = 0; first < n && columns > 0; first += cholesky_block_rows) {
    const Index count = std::min(cholesky_block_rows, n - first);
    gemm<double>(count, columns, first, -1, {L_.row(first).data(), n}, {B.data(), columns}, 1, B.row(first).data(),
                 columns);
    auto block = B.middleRows(first, count);
    L_.block(first, first, count, count).triangularView<Eigen::Lower>().solveInPlace(block);
  }
  return B;
}

Vector<double> Cholesky::solve_upper(const Vector<double>& b) const {
  return L_.triangularView<Eigen::Lower>().transpose().solve(b);
}

}  // namespace dyad
