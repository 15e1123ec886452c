#include "solvers/moment/moment_sums.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

template <typename Scalar>
class MomentSumsTest : public testing::Test {
 protected:
  static constexpr double tolerance = 1000 * std::numeric_limits<Scalar>::epsilon();
};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(MomentSumsTest, Scalars);

template <typename Scalar>
auto factors(const Model<Scalar>& model) {
  return as_row_major(model.factors, model.dim(), model.rank());
}

template <typename Scalar>
void expect_equal(const MomentSums<Scalar>& one, const MomentSums<Scalar>& other, double tolerance) {
  EXPECT_EQ(one.rows, other.rows);
  EXPECT_NEAR(one.p0, other.p0, tolerance * static_cast<double>(one.rows));
  EXPECT_NEAR(one.residual_squares, other.residual_squares, tolerance * one.residual_squares);
  EXPECT_LT((one.moments - other.moments).norm(), tolerance * (one.moments.norm() + static_cast<double>(one.rows)));
}

TYPED_TEST(MomentSumsTest, EqualBruteForceSums) {
  const auto model = test::random_model<TypeParam>(9, 3, 1);
  const auto rows = test::random_rows<TypeParam>(700, 9, 2, 0.6);
  Random random(3, 0);
  const auto other_probe = random_normal<TypeParam>(random, 9, 5);

  const Vector<TypeParam> y = as_vector(rows.targets);
  const Vector<TypeParam> r = y - test::brute_force_predictions(model, rows.X);
  const Matrix<TypeParam> H = rows.X.transpose() * r.asDiagonal() * rows.X;  // sum r xx', d x d

  ThreadPool pool(2);
  for (const auto& view : {rows.dense(), rows.sparse()}) {
    MomentAccumulator<TypeParam> with_factors(pool, model, factors(model), {.squares = true});
    MomentAccumulator<TypeParam> with_probe(pool, model, other_probe);
    with_factors.add(view);
    with_probe.add(view);
    const double scale = this->tolerance * H.norm();
    EXPECT_LT((with_factors.total().G() - H * factors(model)).norm(), scale);
    EXPECT_LT((with_probe.total().G() - H * other_probe).norm(), scale);
    EXPECT_LT((with_probe.total().p1() - rows.X.transpose() * r).norm(), scale);
    EXPECT_LT((with_factors.total().p2 - rows.X.cwiseAbs2().transpose() * r).norm(), scale);
    EXPECT_EQ(with_probe.total().p2.size(), 0);
    EXPECT_NEAR(with_factors.total().p0, r.sum(), scale);
    EXPECT_NEAR(with_factors.total().residual_squares, r.squaredNorm(), this->tolerance * r.squaredNorm());
    EXPECT_EQ(with_factors.total().rows, 700);
  }
}

TYPED_TEST(MomentSumsTest, BilinearSumsEqualBruteForceSums) {
  constexpr Index left = 4;
  const auto model = test::random_model<TypeParam>(9, 3, 1, left);
  const auto rows = test::random_rows<TypeParam>(700, 9, 2, 0.6);
  Random random(3, 0);
  const auto probe = random_normal<TypeParam>(random, 9, 2);
  const Vector<TypeParam> r = as_vector(rows.targets) - test::brute_force_predictions(model, rows.X);
  const Matrix<TypeParam> E = rows.X.leftCols(left).transpose() * r.asDiagonal() * rows.X.rightCols(9 - left);
  const auto stacked = [&](const auto& Z) {
    RowMajorMatrix<TypeParam> product(9, Z.cols());
    product << E * Z.bottomRows(9 - left), E.transpose() * Z.topRows(left);
    return product;
  };
  ThreadPool pool(2);
  for (const auto& view : {rows.dense(), rows.sparse()}) {
    MomentAccumulator<TypeParam> with_factors(pool, model, factors(model));
    MomentAccumulator<TypeParam> with_probe(pool, model, probe);
    with_factors.add(view);
    with_probe.add(view);
    const double scale = this->tolerance * E.norm();
    EXPECT_LT((with_factors.total().G() - stacked(factors(model))).norm(), scale);
    EXPECT_LT((with_probe.total().G() - stacked(probe)).norm(), scale);
    EXPECT_LT((with_probe.total().p1() - rows.X.transpose() * r).norm(), scale);
  }
}

TYPED_TEST(MomentSumsTest, ChunksThreadsAndOrderChangeOnlyRounding) {
  const auto model = test::random_model<TypeParam>(6, 2, 1);
  const auto rows = test::random_rows<TypeParam>(2000, 6, 2);
  ThreadPool one(1);
  MomentAccumulator<TypeParam> whole(one, model, factors(model));
  whole.add(rows.dense());

  for (const int threads : {2, 5}) {
    ThreadPool pool(threads);
    MomentAccumulator<TypeParam> chunked(pool, model, factors(model));
    Index first = 0;
    for (const Index count : {1, 7, 0, 500, 1492}) {
      chunked.add(rows.dense().slice(first, count));
      first += count;
    }
    expect_equal(chunked.total(), whole.total(), this->tolerance);
  }

  std::vector<Index> order(2000);
  std::iota(order.begin(), order.end(), Index(0));
  std::reverse(order.begin() + 3, order.end());
  RowMajorMatrix<TypeParam> X(2000, 6);
  std::vector<TypeParam> y(2000);
  for (std::size_t i = 0; i < order.size(); ++i) {
    X.row(static_cast<Index>(i)) = rows.X.row(order[i]);
    y[i] = rows.targets[static_cast<std::size_t>(order[i])];
  }
  const test::OwnedRows<TypeParam> reordered(std::move(X), std::move(y));
  MomentAccumulator<TypeParam> again(one, model, factors(model));
  again.add(reordered.dense());
  expect_equal(again.total(), whole.total(), this->tolerance);
}

TYPED_TEST(MomentSumsTest, MergeEqualsOnePass) {
  const auto model = test::random_model<TypeParam>(6, 2, 1);
  const auto rows = test::random_rows<TypeParam>(300, 6, 2);
  ThreadPool pool(2);
  const auto sums = [&](Index first, Index count) {
    MomentAccumulator<TypeParam> part(pool, model, factors(model));
    part.add(rows.dense().slice(first, count));
    return part.total();
  };
  MomentSums<TypeParam> merged = sums(0, 100);
  merged += sums(100, 200);
  expect_equal(merged, sums(0, 300), this->tolerance);
}

TEST(MomentSums, ThrowsForInvalidRows) {
  const auto model = test::random_model<double>(4, 2, 1);
  ThreadPool pool(2);
  MomentAccumulator<double> accumulator(pool, model, factors(model));

  auto rows = test::random_rows<double>(10, 4, 1);
  rows.X(7, 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(accumulator.add(rows.dense()), std::invalid_argument);
  rows.X(7, 2) = std::numeric_limits<double>::infinity();
  EXPECT_THROW(accumulator.add(rows.dense()), std::invalid_argument);
  rows.X(7, 2) = 0;
  EXPECT_NO_THROW(accumulator.add(rows.dense()));
  rows.targets[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(accumulator.add(rows.dense()), std::invalid_argument);

  EXPECT_THROW(accumulator.add(test::random_rows<double>(10, 5, 1).dense()), std::invalid_argument);
  EXPECT_THROW(accumulator.add(Rows<double>::dense({rows.X.data(), 8}, 4)), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
