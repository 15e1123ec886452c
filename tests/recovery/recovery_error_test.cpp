#include "recovery/recovery_error.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

TEST(RecoveryError, InteractionErrorIsSpectralNormOfDifference) {
  const auto model = test::random_model<double>(10, 3, 1);
  const auto truth = test::random_model<double>(10, 2, 2);
  const Eigen::MatrixXd difference = test::dense_interactions(model) - test::dense_interactions(truth);
  EXPECT_NEAR(interaction_error(model, truth),
              difference.selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs().maxCoeff(), 1e-12);
}

TEST(RecoveryError, TangentMatchesSmallestCosine) {
  const auto model = test::random_model<double>(10, 3, 1);
  const auto truth = test::random_model<double>(10, 3, 2);
  const Eigen::MatrixXd cosines = as_row_major(truth.factors, 10, 3).transpose() * as_row_major(model.factors, 10, 3);
  const double smallest = Eigen::JacobiSVD<Eigen::MatrixXd>(cosines).singularValues()[2];
  EXPECT_NEAR(tan_largest_angle(model, truth), std::sqrt(1 - smallest * smallest) / smallest, 1e-9);
}

TEST(RecoveryError, ResolvesDifferencesBelowSquareRootOfEpsilon) {
  const auto truth = test::random_model<double>(50, 2, 1);
  Model<double> model = truth;
  model.spectrum[1] += 1e-12;
  EXPECT_NEAR(interaction_error(model, truth), 1e-12, 1e-14);
  EXPECT_LT(tan_largest_angle(model, truth), 1e-14);

  Random random(2, 0);
  RowMajorMatrix<double> perturbed =
      as_row_major(truth.factors, 50, 2) + 1e-11 * random_orthonormal<double>(random, 50, 2);
  as_row_major(model.factors, 50, 2) = orthonormalize<double>(perturbed);
  EXPECT_NEAR(tan_largest_angle(model, truth), 1e-11, 3e-12);
}

TEST(RecoveryError, BilinearErrorsIncludeBothSides) {
  const auto model = test::random_model<double>(12, 2, 1, 5);
  const auto truth = test::random_model<double>(12, 2, 2, 5);
  const Eigen::MatrixXd difference = test::dense_interactions(model) - test::dense_interactions(truth);
  EXPECT_NEAR(interaction_error(model, truth), Eigen::JacobiSVD<Eigen::MatrixXd>(difference).singularValues()[0],
              1e-12);
  Model<double> half = truth;  // correct U, wrong V
  as_row_major(half.factors, 12, 2).bottomRows(7) = as_row_major(model.factors, 12, 2).bottomRows(7);
  EXPECT_GT(tan_largest_angle(half, truth), 0.1);
  EXPECT_LT(tan_largest_angle(truth, truth), 1e-14);
}

TEST(RecoveryError, SquaresExcludeDiagonalFromInteractionError) {
  auto model = test::random_model<double>(40, 3, 1);
  auto truth = test::random_model<double>(40, 2, 2);
  model.squares.assign(40, 0.5);
  truth.squares.assign(40, -1);
  Eigen::MatrixXd difference = test::dense_interactions(model) - test::dense_interactions(truth);
  EXPECT_NEAR(square_error(model, truth), (difference.diagonal().array() + 1.5).matrix().norm(), 1e-12);
  difference.diagonal().setZero();
  const double expected = difference.selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs().maxCoeff();
  EXPECT_NEAR(interaction_error(model, truth), expected, 0.01 * expected);
}

TEST(RecoveryError, OperatorNormIsAccurateToOnePercent) {
  for (const Index dim : {1, 5, 60, 600}) {
    Random random(3, 0);
    const Eigen::MatrixXd half = random_normal<double>(random, dim, dim);
    const Eigen::MatrixXd A = half + half.transpose();
    const double expected = A.selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs().maxCoeff();
    const double found =
        operator_norm(dim, [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> { return A * Z; });
    EXPECT_LE(found, expected * (1 + 1e-12));
    EXPECT_GE(found, 0.99 * expected);
  }
}

TEST(RecoveryError, OrthogonalSpacesHaveInfiniteTangent) {
  Model<double> model(4, 1);
  Model<double> truth(4, 1);
  model.factors = {1, 0, 0, 0};
  truth.factors = {0, 1, 0, 0};
  EXPECT_TRUE(std::isinf(tan_largest_angle(model, truth)));
}

TEST(RecoveryError, AmplitudeErrorIgnoresSign) {
  auto truth = test::random_model<double>(8, 1, 1);
  truth.spectrum[0] = 4;
  Model<double> model = truth;
  as_vector(model.factors) *= -1;
  EXPECT_LT(amplitude_error(model, truth), 1e-15);
  model.spectrum[0] = 1;
  EXPECT_NEAR(amplitude_error(model, truth), 1, 1e-12);
  model.spectrum[0] = -1;
  EXPECT_NEAR(amplitude_error(model, truth), 2, 1e-12);
}

}  // namespace
}  // namespace dyad
