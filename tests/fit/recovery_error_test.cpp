#include "fit/recovery_error.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

TEST(RecoveryError, InteractionErrorIsTheSpectralNormOfTheDifference) {
  const auto model = test::random_model<double>(10, 3, 1);
  const auto truth = test::random_model<double>(10, 2, 2);
  const Eigen::MatrixXd difference = test::dense_interactions(model) - test::dense_interactions(truth);
  EXPECT_NEAR(interaction_error(model, truth),
              difference.selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs().maxCoeff(), 1e-12);
}

TEST(RecoveryError, TangentIsThatOfTheSmallestCosine) {
  const auto model = test::random_model<double>(10, 3, 1);
  const auto truth = test::random_model<double>(10, 3, 2);
  const Eigen::MatrixXd cosines = as_tall(truth.factors, 10, 3).transpose() * as_tall(model.factors, 10, 3);
  const double smallest = Eigen::JacobiSVD<Eigen::MatrixXd>(cosines).singularValues()[2];
  EXPECT_NEAR(tan_largest_angle(model, truth), std::sqrt(1 - smallest * smallest) / smallest, 1e-9);
}

TEST(RecoveryError, SeesDifferencesFarBelowTheSquareRootOfRounding) {
  const auto truth = test::random_model<double>(50, 2, 1);
  Model<double> model = truth;
  model.spectrum[1] += 1e-12;
  EXPECT_NEAR(interaction_error(model, truth), 1e-12, 1e-14);
  EXPECT_LT(tan_largest_angle(model, truth), 1e-14);

  Random random(2, 0);
  Tall<double> nudged = as_tall(truth.factors, 50, 2) + 1e-11 * random_orthonormal<double>(random, 50, 2);
  as_tall(model.factors, 50, 2) = orthonormal<double>(nudged);
  EXPECT_NEAR(tan_largest_angle(model, truth), 1e-11, 3e-12);
}

TEST(RecoveryError, NoCommonDirectionIsInfinite) {
  Model<double> model(4, 1);
  Model<double> truth(4, 1);
  model.factors = {1, 0, 0, 0};
  truth.factors = {0, 1, 0, 0};
  EXPECT_TRUE(std::isinf(tan_largest_angle(model, truth)));
}

TEST(RecoveryError, AmplitudeErrorIgnoresTheSign) {
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
