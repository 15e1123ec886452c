#include "linalg/row_products.h"

#include <ctime>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <tuple>

#include <cblas.h>
#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "support.h"

namespace dyad {
namespace {

template <typename Scalar>
class RowProducts : public testing::Test {
 protected:
  static constexpr double tolerance = 100 * std::numeric_limits<Scalar>::epsilon();
};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(RowProducts, Scalars);

TYPED_TEST(RowProducts, EqualMatrixProductsInBothLayouts) {
  for (const Index width : {1, 3, 8}) {
    const auto rows = test::random_rows<TypeParam>(37, 11, 1, 0.3);
    Random random(2, 0);
    const auto B = random_normal<TypeParam>(random, 11, width);
    const auto C = random_normal<TypeParam>(random, 37, width);
    const auto start = random_normal<TypeParam>(random, 11, width);
    for (const auto& view : {rows.dense(), rows.sparse()}) {
      RowMajorMatrix<TypeParam> projected = RowMajorMatrix<TypeParam>::Constant(37, width, 99);
      project(view, B.data(), width, projected.data());
      EXPECT_LT((projected - rows.X * B).norm(), this->tolerance * B.norm());

      RowMajorMatrix<TypeParam> sum = start;
      add_back_projection(view, C.data(), width, sum.data());
      EXPECT_LT((sum - start - rows.X.transpose() * C).norm(), this->tolerance * (C.norm() + start.norm()));
    }
  }
}

/// A BLAS that shares buffers between threads without locking them fails only sometimes, hence the repetitions.
TYPED_TEST(RowProducts, ConcurrentProductsAreCorrect) {
  constexpr int threads = 4;
  constexpr int repetitions = 5000;
  const auto rows = test::random_rows<TypeParam>(40, 60, 1);
  Random random(2, 0);
  const auto B = random_normal<TypeParam>(random, 60, 5);
  RowMajorMatrix<TypeParam> expected(40, 5);
  project(rows.dense(), B.data(), 5, expected.data());

  ThreadPool pool(threads);
  std::atomic<int> mismatches = 0;
  pool.run([&](int) {
    RowMajorMatrix<TypeParam> projected(40, 5);
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      project(rows.dense(), B.data(), 5, projected.data());
      if (projected != expected) ++mismatches;
    }
  });
  EXPECT_EQ(mismatches, 0);
}

TYPED_TEST(RowProducts, EmptyRowsChangeNothing) {
  const auto rows = test::random_rows<TypeParam>(3, 4, 1);
  const RowMajorMatrix<TypeParam> B = RowMajorMatrix<TypeParam>::Ones(4, 2);
  RowMajorMatrix<TypeParam> sum = RowMajorMatrix<TypeParam>::Ones(4, 2);
  for (const auto& view : {rows.dense().slice(1, 0), rows.sparse().slice(1, 0)}) {
    project<TypeParam, TypeParam>(view, B.data(), 2, nullptr);
    add_back_projection<TypeParam, TypeParam>(view, nullptr, 2, sum.data());
  }
  EXPECT_EQ(sum, B);
}

TYPED_TEST(RowProducts, SplitProductsEqualMatrixProducts) {
  for (const auto& [count, dim, width] : {std::tuple<Index, Index, Index>{700, 90, 17}, {33, 2000, 9}, {70, 80, 130}}) {
    const auto rows = test::random_rows<TypeParam>(count, dim, 1);
    Random random(2, 0);
    const auto B = random_normal<TypeParam>(random, dim, width);
    RowMajorMatrix<TypeParam> projected = RowMajorMatrix<TypeParam>::Constant(count, width, 99);
    project(rows.dense(), B.data(), width, projected.data());
    const RowMajorMatrix<TypeParam> expected = rows.X * B;
    EXPECT_LT((projected - expected).norm(), this->tolerance * expected.norm());
    RowMajorMatrix<TypeParam> sum = B;
    add_back_projection(rows.dense(), projected.data(), width, sum.data());
    const RowMajorMatrix<TypeParam> expected_sum = B + rows.X.transpose() * projected;
    EXPECT_LT((sum - expected_sum).norm(), this->tolerance * expected_sum.norm());
  }
}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The host process controls the number of OpenBLAS's threads, and products run on the calling thread only. If OpenBLAS
/// used 3 threads, the CPU time of the process would be about 3 times that of the calling thread.
TYPED_TEST(RowProducts, DoNotUseThreadsOfOpenBlas) {
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(3);
  const auto rows = test::random_rows<TypeParam>(400, 300, 1);
  Random random(2, 0);
  const auto B = random_normal<TypeParam>(random, 300, 17);
  RowMajorMatrix<TypeParam> projected(400, 17);
  RowMajorMatrix<TypeParam> sum = B;
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the started threads are idle
  const double process_start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double thread_start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  for (int repetition = 0; repetition < 50; ++repetition) {
    project(rows.dense(), B.data(), 17, projected.data());
    add_back_projection(rows.dense(), projected.data(), 17, sum.data());
  }
  const double process_seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - process_start;
  const double thread_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - thread_start;
  EXPECT_LT(process_seconds, 1.2 * thread_seconds);
  EXPECT_EQ(openblas_get_num_threads(), 3);
  openblas_set_num_threads(before);
}

}  // namespace
}  // namespace dyad
