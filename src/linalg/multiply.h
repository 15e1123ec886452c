#pragma once

#include "linalg/gemm.h"
#include "linalg/matrix.h"

namespace dyad {

/// A dense matrix, in either storage order, as operand of gemm(). Does not own the numbers.
template <typename Dense>
Operand<double> operand(const Dense& A, Operation operation = Operation::identity) {
  const bool is_transposed = (operation == Operation::transpose) != !Dense::IsRowMajor;
  return {A.data(), A.outerStride(), is_transposed ? Operation::transpose : Operation::identity};
}

/// A B by gemm(). Eigen's products use the instruction set of the compiler options, which is SSE2 on x86-64.
template <typename Left, typename Right>
RowMajorMatrix<double> multiply(const Left& A, const Right& B) {
  RowMajorMatrix<double> C(A.rows(), B.cols());
  gemm<double>(C.rows(), C.cols(), A.cols(), 1, operand(A), operand(B), 0, C.data(), C.cols());
  return C;
}

/// A'B.
template <typename Left, typename Right>
RowMajorMatrix<double> multiply_transposed(const Left& A, const Right& B) {
  RowMajorMatrix<double> C(A.cols(), B.cols());
  gemm<double>(C.rows(), C.cols(), A.rows(), 1, operand(A, Operation::transpose), operand(B), 0, C.data(), C.cols());
  return C;
}

/// A A'.
template <typename Dense>
RowMajorMatrix<double> outer_gram(const Dense& A) {
  RowMajorMatrix<double> C(A.rows(), A.rows());
  gemm<double>(C.rows(), C.cols(), A.cols(), 1, operand(A), operand(A, Operation::transpose), 0, C.data(), C.cols());
  return C;
}

}  // namespace dyad
