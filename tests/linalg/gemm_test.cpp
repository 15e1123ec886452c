#include "linalg/gemm.h"

#include <cstdlib>
#include <string_view>
#include <tuple>

#include <cblas.h>
#include <gtest/gtest.h>

#include "linalg/matrix.h"

namespace dyad {
namespace {

TEST(Gemm, EqualsBruteForceForAllOperationsAndSplits) {
  Random random(3, 0);
  // the last two sizes exceed the limit of one call of OpenBLAS in all dimensions and in k only
  for (const auto& [m, n, k] : {std::tuple<Index, Index, Index>{3, 5, 7}, {1, 1, 0}, {90, 85, 77}, {4, 3, 40000}}) {
    for (const Operation of_A : {Operation::identity, Operation::transpose})
      for (const Operation of_B : {Operation::identity, Operation::transpose}) {
        const bool is_A_transposed = of_A == Operation::transpose;
        const bool is_B_transposed = of_B == Operation::transpose;
        const auto A = random_normal<double>(random, is_A_transposed ? k : m, is_A_transposed ? m : k);
        const auto B = random_normal<double>(random, is_B_transposed ? n : k, is_B_transposed ? k : n);
        RowMajorMatrix<double> C = random_normal<double>(random, m, n + 2);
        RowMajorMatrix<double> expected = C;
        for (Index i = 0; i < m; ++i)
          for (Index j = 0; j < n; ++j) {
            double sum = 0;
            for (Index l = 0; l < k; ++l)
              sum += (is_A_transposed ? A(l, i) : A(i, l)) * (is_B_transposed ? B(j, l) : B(l, j));
            expected(i, j) = 0.5 * expected(i, j) - 2 * sum;
          }
        gemm<double>(m, n, k, -2, {A.data(), A.cols(), of_A}, {B.data(), B.cols(), of_B}, 0.5, C.data(), n + 2);
        EXPECT_LT((C - expected).cwiseAbs().maxCoeff(), 1e-9);
      }
  }
}

#if defined(__x86_64__)
TEST(Gemm, UsesAvxKernelsOnProcessorsWithAvx2) {
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "the processor has no AVX2, or the environment selects the kernels";
  EXPECT_NE(std::string_view(openblas_get_corename()), "Prescott");
}
#endif

}  // namespace
}  // namespace dyad
