#include "linalg/cholesky.h"

#include <gtest/gtest.h>

#include "linalg/multiply.h"

namespace dyad {
namespace {

TEST(Cholesky, FactorAndInverseEqualDefinitions) {
  Random random(5, 0);
  for (const Index n : {0, 1, 2, 31, 33, 64, 97, 200, 401}) {
    const auto X = random_normal<double>(random, n, n);
    const RowMajorMatrix<double> S = X * X.transpose() + RowMajorMatrix<double>::Identity(n, n);
    // The strict upper triangle of the argument is not read.
    RowMajorMatrix<double> A = S;
    A.triangularView<Eigen::StrictlyUpper>().setConstant(1e30);
    RowMajorMatrix<double> T;
    ASSERT_TRUE(factorize_and_invert(A, T));
    if (n == 0) continue;
    const RowMajorMatrix<double> L = A.triangularView<Eigen::Lower>();
    EXPECT_LT((L * L.transpose() - S).cwiseAbs().maxCoeff(), 1e-12 * S.cwiseAbs().maxCoeff()) << n;
    EXPECT_LT((T * L - RowMajorMatrix<double>::Identity(n, n)).cwiseAbs().maxCoeff(), 1e-10) << n;
    EXPECT_TRUE(T.isLowerTriangular(0)) << n;
  }
}

TEST(Cholesky, RejectsIndefiniteMatrices) {
  RowMajorMatrix<double> A = RowMajorMatrix<double>::Identity(100, 100);
  A(70, 70) = -1;
  RowMajorMatrix<double> T;
  EXPECT_FALSE(factorize_and_invert(A, T));
}

TEST(PivotedCholesky, FactorHasTheRankOfTheMatrix) {
  Random random(6, 0);
  const Matrix<double> U = random_normal<double>(random, 40, 7);
  const Matrix<double> C = U * U.transpose();
  const PivotedCholesky decomposition(C);
  EXPECT_EQ(decomposition.factor().cols(), 7);
  EXPECT_LT((decomposition.factor() * decomposition.factor().transpose() - C).cwiseAbs().maxCoeff(), 1e-10);
}

TEST(PivotedCholesky, SolvesForColumnsInItsSpan) {
  Random random(7, 0);
  const Matrix<double> U = random_normal<double>(random, 30, 5);
  const PivotedCholesky decomposition(U * U.transpose());
  const Matrix<double> X = decomposition.solve(U);
  EXPECT_LT((decomposition.factor() * X - U).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(PivotedCholesky, ZeroMatrixHasRankZero) {
  EXPECT_EQ(PivotedCholesky(Matrix<double>::Zero(4, 4)).factor().cols(), 0);
  EXPECT_EQ(PivotedCholesky(Matrix<double>(0, 0)).factor().cols(), 0);
}

TEST(Multiply, AcceptsBothStorageOrdersAndBlocks) {
  Random random(8, 0);
  const RowMajorMatrix<double> A = random_normal<double>(random, 90, 70);
  const Matrix<double> B = random_normal<double>(random, 70, 80);
  EXPECT_LT((multiply(A, B) - A * B).cwiseAbs().maxCoeff(), 1e-11);
  EXPECT_LT((multiply(A, A.transpose()) - A * A.transpose()).cwiseAbs().maxCoeff(), 1e-11);
  EXPECT_LT((multiply_transposed(B, B.leftCols(9)) - B.transpose() * B.leftCols(9)).cwiseAbs().maxCoeff(), 1e-11);
  EXPECT_LT(
      (outer_gram(B.middleRows(3, 50)) - B.middleRows(3, 50) * B.middleRows(3, 50).transpose()).cwiseAbs().maxCoeff(),
      1e-11);
}

}  // namespace
}  // namespace dyad
