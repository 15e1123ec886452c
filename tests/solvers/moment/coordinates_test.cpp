#include "solvers/moment/coordinates.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

/// Features with means and scales of their own, a symmetric model with squares or a bilinear one.
class CoordinatesTest : public testing::TestWithParam<std::tuple<Index, bool, bool>> {
 protected:
  static constexpr Index dim = 7;
  static constexpr Index rank = 2;
  Index left_dim = std::get<0>(GetParam());
  bool with_squares = std::get<1>(GetParam());
  bool centred = std::get<2>(GetParam());

  CoordinatesTest()
      : model(test::random_model<double>(dim, rank, 3, left_dim)), rows(test::random_rows<double>(300, dim, 1)) {
    if (with_squares) model.squares = {1, -2, 0.5, 3, 0, -1, 0.1};
    Tall<double> X = rows.X;
    for (Index j = 0; j < dim; ++j) X.col(j) = (X.col(j).array() * (0.1 + double(j)) + 2.0 * double(j) - 3).matrix();
    rows = test::OwnedRows<double>(X, rows.targets);
    FeatureMoments moments(dim);
    moments.add(rows.dense());
    coordinates.emplace(moments, centred);
    const Eigen::RowVectorXd mean = centred ? Eigen::RowVectorXd(X.colwise().mean()) : Eigen::RowVectorXd::Zero(dim);
    const Eigen::RowVectorXd scale = ((X.rowwise() - mean).colwise().squaredNorm() / 300.0).cwiseSqrt();
    Z = ((X.rowwise() - mean).array().rowwise() / scale.array()).matrix();
  }

  Model<double> model;
  test::OwnedRows<double> rows;
  std::optional<Coordinates> coordinates;
  Tall<double> Z;
};

TEST_P(CoordinatesTest, BothModelsPredictTheSame) {
  const Vector<double> expected = test::brute_force_predictions(model, rows.X);
  const auto standard = coordinates->standard(model);
  EXPECT_LT((test::brute_force_predictions(standard.model, Z) - expected).norm(), 1e-9 * expected.norm());
  const Model<double> back = coordinates->raw(standard.model);
  EXPECT_LT((test::brute_force_predictions(back, rows.X) - expected).norm(), 1e-9 * expected.norm());
}

TEST_P(CoordinatesTest, FactorsAreOrthonormalOnBothSidesOfTheChange) {
  const auto standard = coordinates->standard(model);
  const Model<double> back = coordinates->raw(standard.model);
  for (const Model<double>* of : {&standard.model, &back}) {
    const Sides sides(*of);
    const auto U = as_tall(of->factors, dim, rank);
    EXPECT_TRUE((sides.left(U).transpose() * sides.left(U)).isIdentity(1e-9));
    EXPECT_TRUE((sides.right(U).transpose() * sides.right(U)).isIdentity(1e-9));
  }
}

TEST_P(CoordinatesTest, SumsAreThoseOfTheStandardisedRows) {
  ThreadPool pool(1);
  const auto sums_of = [&](const Model<double>& of, const Tall<double>& X) {
    const test::OwnedRows<double> owned(X, rows.targets);
    MomentAccumulator<double> accumulator(pool, of, as_tall(of.factors, dim, rank), {.squares = left_dim == 0});
    accumulator.add(owned.dense());
    return accumulator.total();
  };
  const auto standard = coordinates->standard(model);
  const MomentSums<double> expected = sums_of(standard.model, Z);
  const MomentSums<double> converted = coordinates->standard(sums_of(model, rows.X), model, standard);
  EXPECT_LT((converted.moments - expected.moments).norm(), 1e-8 * expected.moments.norm());
  EXPECT_LE((converted.p2 - expected.p2).norm(), 1e-8 * expected.p2.norm());
  EXPECT_NEAR(converted.p0, expected.p0, 1e-8 * std::abs(expected.p0));
}

INSTANTIATE_TEST_SUITE_P(All, CoordinatesTest,
                         testing::Values(std::tuple{0, false, true}, std::tuple{0, true, true},
                                         std::tuple{3, false, true}, std::tuple{0, false, false},
                                         std::tuple{3, false, false}));

TEST(Coordinates, LeaveFeaturesOutThatHaveNotVaried) {
  test::OwnedRows<double> rows = test::random_rows<double>(100, 5, 2);
  Tall<double> X = rows.X;
  X.col(1).setConstant(4);
  X.col(3).setZero();
  rows = test::OwnedRows<double>(X, rows.targets);
  FeatureMoments moments(5);
  moments.add(rows.dense());
  const Coordinates coordinates(moments, true);
  const auto standard = coordinates.standard(test::random_model<double>(5, 4, 1));
  EXPECT_TRUE(standard.model.is_finite());
  EXPECT_TRUE(standard.left_rotation.allFinite());
  const Model<double> back = coordinates.raw(standard.model);
  EXPECT_TRUE(back.is_finite());
  EXPECT_NEAR(back.interaction(1, 3), 0, 1e-12);
  EXPECT_NEAR(back.interaction(3, 3), 0, 1e-12);
}

}  // namespace
}  // namespace dyad
