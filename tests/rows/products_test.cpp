#include "rows/products.h"

#include <atomic>
#include <limits>

#include <gtest/gtest.h>

#include "base/workers.h"
#include "support.h"

namespace dyad {
namespace {

template <typename Scalar>
class Products : public testing::Test {
 protected:
  static constexpr double tolerance = 100 * std::numeric_limits<Scalar>::epsilon();
};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(Products, Scalars);

TYPED_TEST(Products, AreMatrixProductsInBothLayouts) {
  for (const Index width : {1, 3, 8}) {
    const auto rows = test::random_rows<TypeParam>(37, 11, 1, 0.3);
    Random random(2, 0);
    const auto B = random_normal<TypeParam>(random, 11, width);
    const auto C = random_normal<TypeParam>(random, 37, width);
    const auto start = random_normal<TypeParam>(random, 11, width);
    for (const auto& view : {rows.dense(), rows.sparse()}) {
      Tall<TypeParam> projected = Tall<TypeParam>::Constant(37, width, 99);
      project(view, B.data(), width, projected.data());
      EXPECT_LT((projected - rows.X * B).norm(), this->tolerance * B.norm());

      Tall<TypeParam> sum = start;
      add_back_projection(view, C.data(), width, sum.data());
      EXPECT_LT((sum - start - rows.X.transpose() * C).norm(), this->tolerance * (C.norm() + start.norm()));
    }
  }
}

/// A BLAS that shares buffers between threads without locking them passes most of the time; hence the repetition.
TYPED_TEST(Products, AreTheSameOnManyThreadsAtOnce) {
  constexpr int threads = 4;
  constexpr int repetitions = 5000;
  const auto rows = test::random_rows<TypeParam>(40, 60, 1);
  Random random(2, 0);
  const auto B = random_normal<TypeParam>(random, 60, 5);
  Tall<TypeParam> expected(40, 5);
  project(rows.dense(), B.data(), 5, expected.data());

  Workers workers(threads);
  std::atomic<int> wrong = 0;
  workers.run([&](int) {
    Tall<TypeParam> projected(40, 5);
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      project(rows.dense(), B.data(), 5, projected.data());
      if (projected != expected) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST(Products, OfNoRowsChangeNothing) {
  const auto rows = test::random_rows<TypeParam>(3, 4, 1);
  const Tall<TypeParam> B = Tall<TypeParam>::Ones(4, 2);
  Tall<TypeParam> sum = Tall<TypeParam>::Ones(4, 2);
  for (const auto& view : {rows.dense().slice(1, 0), rows.sparse().slice(1, 0)}) {
    project<TypeParam>(view, B.data(), 2, nullptr);
    add_back_projection<TypeParam>(view, nullptr, 2, sum.data());
  }
  EXPECT_EQ(sum, B);
}

}  // namespace
}  // namespace dyad
