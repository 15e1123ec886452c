#include "model/low_rank.h"

#include <tuple>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

struct Problem {
  Matrix<double> C;
  Matrix<double> S;
  [[nodiscard]] Sides sides() const { return {C.rows(), 0}; }
  [[nodiscard]] Eigen::MatrixXd dense() const { return C * S * C.transpose(); }
};

Problem random_problem(Index dim, Index width, std::uint64_t seed) {
  Random random(seed, 0);
  const Matrix<double> S = random_normal<double>(random, width, width);
  return {random_normal<double>(random, dim, width), S + S.transpose()};
}

TEST(LowRank, TruncationEqualsDenseEigendecomposition) {
  for (const auto& [dim, width] : {std::pair<Index, Index>{20, 6}, {5, 8}, {6, 6}}) {
    const Problem problem = random_problem(dim, width, 1);
    for (Index k = 1; k <= std::min(dim, width); ++k) {
      const auto truncated =
          truncate_to_rank<double>(problem.sides(), problem.C, problem.S, k, EigenvalueSelection::largest);
      const Eigen::MatrixXd approximation =
          truncated.vectors * truncated.values.asDiagonal() * truncated.vectors.transpose();
      EXPECT_LT((approximation - test::brute_force_rank_k(problem.dense(), k)).norm(), 1e-11 * problem.dense().norm());
      EXPECT_TRUE((truncated.vectors.transpose() * truncated.vectors).isIdentity(1e-12));
      for (Index c = 1; c < k; ++c) EXPECT_LE(std::abs(truncated.values[c]), std::abs(truncated.values[c - 1]));
    }
  }
}

TEST(LowRank, PositiveTruncationHasNoNegativeEigenvalue) {
  const Problem problem = random_problem(12, 6, 2);
  for (const Index k : {1, 3, 6}) {
    const auto truncated =
        truncate_to_rank<double>(problem.sides(), problem.C, problem.S, k, EigenvalueSelection::positive);
    const Eigen::MatrixXd approximation =
        truncated.vectors * truncated.values.asDiagonal() * truncated.vectors.transpose();
    EXPECT_LT((approximation - test::brute_force_rank_k(problem.dense(), k, true)).norm(),
              1e-11 * problem.dense().norm());
    EXPECT_GE(truncated.values.minCoeff(), 0);
    EXPECT_TRUE((truncated.vectors.transpose() * truncated.vectors).isIdentity(1e-12));
  }
}

TEST(LowRank, BilinearTruncationEqualsTruncatedSvd) {
  for (const auto& [left, right, width] : {std::tuple<Index, Index, Index>{12, 20, 6}, {4, 9, 6}, {3, 3, 8}}) {
    const Sides sides(left + right, left);
    Random random(4, 0);
    const Matrix<double> C = random_normal<double>(random, left + right, width);
    const Matrix<double> S = random_normal<double>(random, width, width);
    const Eigen::MatrixXd dense = sides.left(C) * S * sides.right(C).transpose();
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(dense, Eigen::ComputeThinU | Eigen::ComputeThinV);
    for (Index k = 1; k <= std::min({left, right, width}); ++k) {
      const auto truncated = truncate_to_rank<double>(sides, C, S, k, EigenvalueSelection::largest);
      const Eigen::MatrixXd approximation =
          sides.left(truncated.vectors) * truncated.values.asDiagonal() * sides.right(truncated.vectors).transpose();
      const Eigen::MatrixXd expected =
          svd.matrixU().leftCols(k) * svd.singularValues().head(k).asDiagonal() * svd.matrixV().leftCols(k).transpose();
      EXPECT_LT((approximation - expected).norm(), 1e-11 * dense.norm());
      EXPECT_TRUE((sides.left(truncated.vectors).transpose() * sides.left(truncated.vectors)).isIdentity(1e-12));
      EXPECT_TRUE((sides.right(truncated.vectors).transpose() * sides.right(truncated.vectors)).isIdentity(1e-12));
    }
    EXPECT_NEAR(spectral_norm(sides, C, S), svd.singularValues()[0], 1e-11 * svd.singularValues()[0]);
  }
}

TEST(LowRank, SpectralNormEqualsDenseSpectralNorm) {
  const Problem problem = random_problem(15, 4, 3);
  const double expected = problem.dense().selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs().maxCoeff();
  EXPECT_NEAR(spectral_norm(problem.sides(), problem.C, problem.S), expected, 1e-11 * expected);
}

}  // namespace
}  // namespace dyad
