#include "linalg/matrix.h"
#include "linalg/decompositions.h"

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(LinearAlgebra, OrthonormalPreservesSpan) {
  Random random(1, 0);
  const RowMajorMatrix<double> A = random_normal<double>(random, 30, 4);
  const RowMajorMatrix<double> Q = orthonormalize<double>(A);
  EXPECT_TRUE((Q.transpose() * Q).isIdentity(1e-13));
  EXPECT_LT((A - Q * (Q.transpose() * A)).norm(), 1e-12);
}

TEST(LinearAlgebra, OrthonormalAcceptsSquareMatrix) {
  Random random(2, 0);
  const RowMajorMatrix<float> Q = random_orthonormal<float>(random, 6, 6);
  EXPECT_TRUE((Q.transpose() * Q).isIdentity(1e-5F));
}

}  // namespace
}  // namespace dyad
