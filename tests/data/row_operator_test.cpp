#include "data/row_operator.h"

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "data/observed_rows.h"
#include "data/row_cache.h"
#include "support.h"

namespace dyad::row_operator_test {
namespace {

constexpr Index count = 601;  // more than two blocks of rows
constexpr Index dim = 11;
constexpr Index width = 3;
constexpr double tolerance = 1e-11;
constexpr IndexRange all_rows{0, count};
constexpr IndexRange all_columns{0, dim};

/// Rows in all layouts: dense and sparse, in memory and mapped from a file.
template <typename Scalar>
struct Layouts {
  test::OwnedRows<Scalar> rows = test::random_rows<Scalar>(count, dim, 1, 0.5);
  RowCache<Scalar> dense_on_disk;
  RowCache<Scalar> sparse_on_disk;

  Layouts() {
    dense_on_disk.move_to_disk(testing::TempDir());
    sparse_on_disk.move_to_disk(testing::TempDir());
    dense_on_disk.append(rows.dense());
    sparse_on_disk.append(rows.sparse());
  }
  [[nodiscard]] std::vector<std::unique_ptr<RowOperator>> operators() {
    std::vector<std::unique_ptr<RowOperator>> all;
    for (const Rows<Scalar>& view : {rows.dense(), rows.sparse(), dense_on_disk.view(dim), sparse_on_disk.view(dim)})
      all.push_back(make_row_operator(view));
    return all;
  }
  [[nodiscard]] RowMajorMatrix<double> X() const { return rows.X.template cast<double>(); }
};

RowMajorMatrix<double> random_matrix(Index rows, Index columns, std::uint64_t seed) {
  Random random(seed, 0);
  return random_normal<double>(random, rows, columns);
}

template <typename Scalar>
class RowOperators : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(RowOperators, Scalars);

TYPED_TEST(RowOperators, ProductsEqualBruteForceInDouble) {
  Layouts<TypeParam> layouts;
  const RowMajorMatrix<double> X = layouts.X();
  const RowMajorMatrix<double> U = random_matrix(dim, width, 2);
  const RowMajorMatrix<double> R = random_matrix(count, width, 3);
  const RowMajorMatrix<double> start = random_matrix(dim, width, 4);
  for (const auto& op : layouts.operators()) {
    EXPECT_EQ(op->count(), count);
    EXPECT_EQ(op->dim(), dim);
    EXPECT_EQ(op->epsilon(), std::numeric_limits<TypeParam>::epsilon());
    EXPECT_TRUE(op->can_split());
    EXPECT_LE(op->block_rows(), 256);
    RowMajorMatrix<double> XU = RowMajorMatrix<double>::Constant(count, width, 99);
    op->multiply(all_rows, all_columns, U.data(), width, XU.data());
    EXPECT_LT((XU - X * U).norm(), tolerance);
    RowMajorMatrix<double> XR = start;
    op->add_transposed_product(all_rows, all_columns, R.data(), width, XR.data());
    EXPECT_LT((XR - start - X.transpose() * R).norm(), tolerance);
    Vector<double> squares(count);
    op->multiply_squares(all_rows, Vector<double>(U.col(0)).data(), squares.data());
    EXPECT_LT((squares - X.cwiseAbs2() * U.col(0)).norm(), tolerance);
    Vector<double> sums = start.col(0);
    op->add_transposed_squares(all_rows, Vector<double>(R.col(0)).data(), sums.data());
    EXPECT_LT((sums - start.col(0) - X.cwiseAbs2().transpose() * R.col(0)).norm(), tolerance);
  }
}

TYPED_TEST(RowOperators, TransposedProductIsAdjoint) {
  Layouts<TypeParam> layouts;
  const RowMajorMatrix<double> u = random_matrix(dim, 1, 2);
  const RowMajorMatrix<double> r = random_matrix(count, 1, 3);
  for (const auto& op : layouts.operators()) {
    Vector<double> Xu(count);
    Vector<double> Xr = Vector<double>::Zero(dim);
    op->multiply(all_rows, all_columns, u.data(), 1, Xu.data());
    op->add_transposed_product(all_rows, all_columns, r.data(), 1, Xr.data());
    EXPECT_NEAR(Xu.dot(r.col(0)), Xr.dot(u.col(0)), tolerance);
    op->multiply_squares(all_rows, u.data(), Xu.data());
    Xr.setZero();
    op->add_transposed_squares(all_rows, r.data(), Xr.data());
    EXPECT_NEAR(Xu.dot(r.col(0)), Xr.dot(u.col(0)), tolerance);
  }
}

TYPED_TEST(RowOperators, ProductsOfRangesSumToTotal) {
  Layouts<TypeParam> layouts;
  const RowMajorMatrix<double> X = layouts.X();
  const RowMajorMatrix<double> U = random_matrix(dim, width, 2);
  const RowMajorMatrix<double> R = random_matrix(count, width, 3);
  for (const auto& op : layouts.operators()) {
    RowMajorMatrix<double> XU = RowMajorMatrix<double>::Zero(count, width);
    RowMajorMatrix<double> XR = RowMajorMatrix<double>::Zero(dim, width);
    for (const IndexRange rows : {IndexRange{0, 17}, IndexRange{17, 500}, IndexRange{517, count - 517}})
      for (const IndexRange columns : {IndexRange{0, 4}, IndexRange{4, dim - 4}}) {
        RowMajorMatrix<double> product(rows.count, width);
        op->multiply(rows, columns, U.row(columns.first).data(), width, product.data());
        XU.middleRows(rows.first, rows.count) += product;
        op->add_transposed_product(rows, columns, R.row(rows.first).data(), width, XR.row(columns.first).data());
      }
    EXPECT_LT((XU - X * U).norm(), tolerance);
    EXPECT_LT((XR - X.transpose() * R).norm(), tolerance);
  }
}

TYPED_TEST(RowOperators, GramMatrixEqualsBruteForce) {
  Layouts<TypeParam> layouts;
  const RowMajorMatrix<double> X = layouts.X();
  const Vector<double> weights = random_matrix(count, 1, 5).cwiseAbs();
  for (const bool squares : {false, true}) {
    const Index size = 1 + (squares ? 2 : 1) * dim;
    RowMajorMatrix<double> Z(count, size);
    Z.col(0).setOnes();
    Z.middleCols(1, dim) = X;
    if (squares) Z.rightCols(dim) = X.cwiseAbs2();
    const Matrix<double> expected = Z.transpose() * weights.asDiagonal() * Z;
    for (const auto& op : layouts.operators()) {
      Matrix<double> gram = Matrix<double>::Zero(size, size);
      Vector<double> diagonal = Vector<double>::Zero(size);
      for (const IndexRange rows : {IndexRange{0, 300}, IndexRange{300, count - 300}}) {
        op->add_gram(rows, weights.data() + rows.first, gram);
        op->add_gram_diagonal(rows, weights.data() + rows.first, diagonal);
      }
      EXPECT_LT((gram - expected).norm(), tolerance * expected.norm());
      EXPECT_LT((diagonal - expected.diagonal()).norm(), tolerance * expected.norm());
    }
  }
}

TYPED_TEST(RowOperators, CopyColumnRequiresDenseRows) {
  Layouts<TypeParam> layouts;
  for (const auto& op : layouts.operators()) {
    Vector<double> column(count);
    if (!op->is_dense()) {
      EXPECT_THROW(op->copy_column(5, column.data()), std::logic_error);
      continue;
    }
    op->copy_column(5, column.data());
    EXPECT_EQ(column, layouts.X().col(5));
  }
}

TYPED_TEST(RowOperators, CopyRowsEqualsStoredRows) {
  Layouts<TypeParam> layouts;
  for (const auto& op : layouts.operators()) {
    RowMajorMatrix<double> copy(5, dim);
    op->copy_rows({7, 5}, copy.data());
    EXPECT_EQ(copy, layouts.X().middleRows(7, 5));
  }
}

/// Products with one or two columns do not use BLAS.
TYPED_TEST(RowOperators, NarrowProductsEqualBruteForce) {
  Layouts<TypeParam> layouts;
  const RowMajorMatrix<double> X = layouts.X();
  for (const auto& op : layouts.operators())
    for (const Index columns : {1, 2, 3}) {
      const RowMajorMatrix<double> U = random_matrix(dim, columns, 2);
      RowMajorMatrix<double> product(count, columns);
      op->multiply({0, count}, all_columns, U.data(), columns, product.data());
      EXPECT_LT((product - X * U).norm(), 1e-10 * product.norm());
      RowMajorMatrix<double> sum = U;
      op->add_transposed_product({0, count}, all_columns, product.data(), columns, sum.data());
      EXPECT_LT((sum - U - X.transpose() * product).norm(), 1e-10 * sum.norm());
    }
}

/// An operator that requires all rows is called once with the range of all rows.
TEST(RowOperator, IsNotSplitIfItCannotSplit) {
  class UnsplittableOperator : public RowOperator {
   public:
    [[nodiscard]] Index count() const override { return 100; }
    [[nodiscard]] Index dim() const override { return 1; }
    [[nodiscard]] double entries() const override { return 1e9; }
    [[nodiscard]] Index block_rows() const override { return 100; }
    [[nodiscard]] bool can_split() const override { return false; }
    void multiply(IndexRange, IndexRange, const double*, Index, double*) const override {}
    void add_transposed_product(IndexRange, IndexRange, const double*, Index, double*) const override {}
    void multiply_squares(IndexRange, const double*, double*) const override {}
    void add_transposed_squares(IndexRange, const double*, double*) const override {}
    void add_gram(IndexRange, const double*, Matrix<double>&) const override {}
    void add_gram_diagonal(IndexRange, const double*, Vector<double>&) const override {}
    void copy_rows(IndexRange, double*) const override {}
  };
  ThreadPool pool(2);
  int calls = 0;
  for_each_row_range(UnsplittableOperator(), pool, [&](int worker, IndexRange rows) {
    EXPECT_EQ(worker, 0);
    EXPECT_EQ(rows.count, 100);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(ObservedRows, ExcludesMarkedRowsByWeight) {
  const auto rows = test::random_rows<float>(4, 3, 1);
  const std::vector<std::uint8_t> marks{0, 1, 0, 1};
  const ObservedRows observed(rows.dense().without(marks, 1));
  EXPECT_EQ(observed.weights(), (Vector<double>(4) << 1, 0, 1, 0).finished());
  for (Index i = 0; i < 4; ++i) EXPECT_EQ(observed.targets()[i], rows.targets[static_cast<std::size_t>(i)]);
}

}  // namespace
}  // namespace dyad::row_operator_test
