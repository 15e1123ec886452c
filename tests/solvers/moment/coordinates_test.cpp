#include "solvers/moment/coordinates.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

/// Features with different means and scales. Parameters: left_dim, whether the model has squares, whether features are
/// centered.
class CoordinatesTest : public testing::TestWithParam<std::tuple<Index, bool, bool>> {
 protected:
  static constexpr Index dim = 7;
  static constexpr Index rank = 2;
  Index left_dim = std::get<0>(GetParam());
  bool has_squares = std::get<1>(GetParam());
  bool is_centered = std::get<2>(GetParam());

  CoordinatesTest()
      : model(test::random_model<double>(dim, rank, 3, left_dim)), rows(test::random_rows<double>(300, dim, 1)) {
    if (has_squares) model.squares = {1, -2, 0.5, 3, 0, -1, 0.1};
    RowMajorMatrix<double> X = rows.X;
    for (Index j = 0; j < dim; ++j) X.col(j) = (X.col(j).array() * (0.1 + double(j)) + 2.0 * double(j) - 3).matrix();
    rows = test::OwnedRows<double>(X, rows.targets);
    FeatureMoments moments(dim);
    moments.add(rows.dense());
    coordinates.emplace(moments, is_centered);
    const Eigen::RowVectorXd mean =
        is_centered ? Eigen::RowVectorXd(X.colwise().mean()) : Eigen::RowVectorXd::Zero(dim);
    const Eigen::RowVectorXd scale = ((X.rowwise() - mean).colwise().squaredNorm() / 300.0).cwiseSqrt();
    Z = ((X.rowwise() - mean).array().rowwise() / scale.array()).matrix();
  }

  Model<double> model;
  test::OwnedRows<double> rows;
  std::optional<Coordinates> coordinates;
  RowMajorMatrix<double> Z;
};

TEST_P(CoordinatesTest, StandardModelHasTheSamePredictions) {
  const Vector<double> expected = test::brute_force_predictions(model, rows.X);
  const auto standard = coordinates->to_standard(model);
  EXPECT_LT((test::brute_force_predictions(standard.model, Z) - expected).norm(), 1e-9 * expected.norm());
  const Model<double> round_trip = coordinates->from_standard(standard.model);
  EXPECT_LT((test::brute_force_predictions(round_trip, rows.X) - expected).norm(), 1e-9 * expected.norm());
}

TEST_P(CoordinatesTest, FactorsStayOrthonormal) {
  const auto standard = coordinates->to_standard(model);
  const Model<double> round_trip = coordinates->from_standard(standard.model);
  for (const Model<double>* factorized : {&standard.model, &round_trip}) {
    const Sides sides(*factorized);
    const auto U = as_row_major(factorized->factors, dim, rank);
    EXPECT_TRUE((sides.left(U).transpose() * sides.left(U)).isIdentity(1e-9));
    EXPECT_TRUE((sides.right(U).transpose() * sides.right(U)).isIdentity(1e-9));
  }
}

TEST_P(CoordinatesTest, SumsEqualThoseOfStandardizedRows) {
  ThreadPool pool(1);
  const auto sums_of = [&](const Model<double>& probed, const RowMajorMatrix<double>& X) {
    const test::OwnedRows<double> owned(X, rows.targets);
    MomentAccumulator<double> accumulator(pool, probed, as_row_major(probed.factors, dim, rank),
                                          {.squares = left_dim == 0});
    accumulator.add(owned.dense());
    return accumulator.total();
  };
  const auto standard = coordinates->to_standard(model);
  const MomentSums<double> expected = sums_of(standard.model, Z);
  const MomentSums<double> converted = coordinates->to_standard(sums_of(model, rows.X), model, standard);
  EXPECT_LT((converted.moments - expected.moments).norm(), 1e-8 * expected.moments.norm());
  EXPECT_LE((converted.p2 - expected.p2).norm(), 1e-8 * expected.p2.norm());
  EXPECT_NEAR(converted.p0, expected.p0, 1e-8 * std::abs(expected.p0));
}

INSTANTIATE_TEST_SUITE_P(All, CoordinatesTest,
                         testing::Values(std::tuple{0, false, true}, std::tuple{0, true, true},
                                         std::tuple{3, false, true}, std::tuple{0, false, false},
                                         std::tuple{3, false, false}));

TEST(Coordinates, ConstantFeaturesHaveNoInteractions) {
  test::OwnedRows<double> rows = test::random_rows<double>(100, 5, 2);
  RowMajorMatrix<double> X = rows.X;
  X.col(1).setConstant(4);
  X.col(3).setZero();
  rows = test::OwnedRows<double>(X, rows.targets);
  FeatureMoments moments(5);
  moments.add(rows.dense());
  const Coordinates coordinates(moments, true);
  const auto standard = coordinates.to_standard(test::random_model<double>(5, 4, 1));
  EXPECT_TRUE(standard.model.is_finite());
  EXPECT_TRUE(standard.left_rotation.allFinite());
  const Model<double> round_trip = coordinates.from_standard(standard.model);
  EXPECT_TRUE(round_trip.is_finite());
  EXPECT_NEAR(round_trip.interaction(1, 3), 0, 1e-12);
  EXPECT_NEAR(round_trip.interaction(3, 3), 0, 1e-12);
}

}  // namespace
}  // namespace dyad
