#include "linalg/blocked_cholesky.h"

#include <gtest/gtest.h>

namespace dyad {
namespace {

RowMajorMatrix<double> random_positive_definite(Index n) {
  Random random(static_cast<std::uint64_t>(n), 0);
  const RowMajorMatrix<double> A = random_normal<double>(random, n, n);
  return A * A.transpose() + RowMajorMatrix<double>::Identity(n, n);
}

/// Sizes below, equal to and between multiples of the block size.
TEST(Cholesky, SolvesSystemsOfAnySize) {
  for (const Index n : {1, 5, 31, 32, 33, 64, 150}) {
    const RowMajorMatrix<double> K = random_positive_definite(n);
    RowMajorMatrix<double> lower = K;
    lower.triangularView<Eigen::StrictlyUpper>().setConstant(7);  // not read
    const Cholesky cholesky(lower);
    ASSERT_TRUE(cholesky.is_positive_definite()) << n;
    Random random(2, 0);
    const RowMajorMatrix<double> B = random_normal<double>(random, n, 3);
    const RowMajorMatrix<double> half = cholesky.solve_lower(B);
    for (Index c = 0; c < B.cols(); ++c)
      EXPECT_LT((K * cholesky.solve_upper(half.col(c)) - B.col(c)).norm(), 1e-10 * B.norm()) << n;
    EXPECT_EQ(cholesky.solve_lower(RowMajorMatrix<double>(n, 0)).cols(), 0);
  }
}

TEST(Cholesky, ReportsIndefiniteMatrices) {
  for (const Index n : {5, 40, 100}) {
    RowMajorMatrix<double> K = random_positive_definite(n);
    K(n - 1, n - 1) = -1;
    EXPECT_FALSE(Cholesky(K).is_positive_definite()) << n;
  }
}

}  // namespace
}  // namespace dyad
