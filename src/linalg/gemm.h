#pragma once

#include <dyad/rows.h>

namespace dyad {

/// A matrix of a product is used as stored, or transposed.
enum class Operation { identity, transpose };

/// Row-major matrix operand: the address of its first number and the distance of its rows.
template <typename Number>
struct Operand {
  const Number* numbers = nullptr;
  Index stride = 0;
  Operation operation = Operation::identity;
};

/// C (m x n) = alpha op(A) op(B) + beta C, where op(A) is m x k and op(B) is k x n. C is row-major with rows `stride_C`
/// numbers apart. Runs on the calling thread; several threads may call it at the same time.
template <typename Number>
void gemm(Index m, Index n, Index k, Number alpha, Operand<Number> A, Operand<Number> B, Number beta, Number* C,
          Index stride_C);

}  // namespace dyad
