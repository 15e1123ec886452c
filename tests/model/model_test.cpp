#include <dyad/model.h>

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

template <typename Scalar>
class TypedModel : public testing::Test {
 protected:
  static constexpr double tolerance = 1000 * std::numeric_limits<Scalar>::epsilon();
};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(TypedModel, Scalars);

template <typename Scalar>
Vector<Scalar> predictions(const Model<Scalar>& model, const Rows<Scalar>& rows) {
  Vector<Scalar> f(rows.count());
  model.predict(rows, {f.data(), static_cast<std::size_t>(f.size())});
  return f;
}

TYPED_TEST(TypedModel, PredictionEqualsDefinitionForDenseAndSparseRows) {
  for (const Index rank : {0, 1, 4, 9}) {
    const auto model = test::random_model<TypeParam>(9, rank, 3);
    const auto rows = test::random_rows<TypeParam>(3000, 9, 4, 0.5);  // more than one cache-sized block
    const auto expected = test::brute_force_predictions(model, rows.X);
    EXPECT_LT((predictions(model, rows.dense()) - expected).norm(), this->tolerance * expected.norm());
    EXPECT_LT((predictions(model, rows.sparse()) - expected).norm(), this->tolerance * expected.norm());
  }
}

TYPED_TEST(TypedModel, PredictionIncludesSquares) {
  auto model = test::random_model<TypeParam>(9, 3, 3);
  Random random(4, 0);
  model.squares.resize(9);
  as_vector(model.squares) = random_normal<TypeParam>(random, 9, 1);
  const auto rows = test::random_rows<TypeParam>(300, 9, 4, 0.5);
  const auto expected = test::brute_force_predictions(model, rows.X);
  EXPECT_LT((predictions(model, rows.dense()) - expected).norm(), this->tolerance * expected.norm());
  EXPECT_LT((predictions(model, rows.sparse()) - expected).norm(), this->tolerance * expected.norm());
}

TYPED_TEST(TypedModel, BilinearPredictionEqualsDefinitionForDenseAndSparseRows) {
  const auto model = test::random_model<TypeParam>(12, 3, 3, 5);
  const auto rows = test::random_rows<TypeParam>(3000, 12, 4, 0.5);
  const auto expected = test::brute_force_predictions(model, rows.X);
  EXPECT_LT((predictions(model, rows.dense()) - expected).norm(), this->tolerance * expected.norm());
  EXPECT_LT((predictions(model, rows.sparse()) - expected).norm(), this->tolerance * expected.norm());
  const auto M = test::dense_interactions(model);
  EXPECT_NEAR(model.interaction(4, 6), M(4, 6), this->tolerance);
  EXPECT_THROW((void)model.interaction(5, 0), std::invalid_argument);
  EXPECT_EQ(model.mean_interaction(), 0);
}

TYPED_TEST(TypedModel, InteractionsAndTraceEqualDenseM) {
  const auto model = test::random_model<TypeParam>(7, 3, 5);
  const auto M = test::dense_interactions(model);
  for (Index i = 0; i < 7; ++i)
    for (Index j = 0; j < 7; ++j) EXPECT_NEAR(model.interaction(i, j), M(i, j), this->tolerance);
  EXPECT_NEAR(model.mean_interaction(), M.trace(), this->tolerance);
}

TEST(Model, PredictionIsInvariantToRotation) {
  const auto model = test::random_model<double>(8, 3, 6);
  const auto rows = test::random_rows<double>(50, 8, 7);
  Random random(8, 0);
  const RowMajorMatrix<double> Q = random_orthonormal<double>(random, 8, 8);
  Model<double> rotated = model;
  as_vector(rotated.weights) = Q * as_vector(model.weights);
  as_row_major(rotated.factors, 8, 3) = Q * as_row_major(model.factors, 8, 3);
  const test::OwnedRows<double> rotated_rows(rows.X * Q.transpose(), rows.targets);
  EXPECT_LT((predictions(model, rows.dense()) - predictions(rotated, rotated_rows.dense())).norm(), 1e-12);
}

TEST(Model, IsFiniteDetectsNan) {
  auto model = test::random_model<double>(4, 2, 1);
  EXPECT_TRUE(model.is_finite());
  model.factors[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(model.is_finite());
}

TEST(Model, RejectsMismatchedSizes) {
  const auto model = test::random_model<double>(4, 2, 1);
  const auto rows = test::random_rows<double>(5, 3, 1);
  const auto matching = test::random_rows<double>(5, 4, 1);
  std::vector<double> f(5);
  EXPECT_THROW(model.predict(rows.dense(), f), std::invalid_argument);
  f.resize(4);
  EXPECT_THROW(model.predict(matching.dense(), f), std::invalid_argument);
  EXPECT_THROW((void)model.interaction(0, 4), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
