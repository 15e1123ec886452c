#include "solvers/irls/weighted_regression.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

constexpr Index row_count = 60;
constexpr Index feature_count = 7;
constexpr Index factor_count = 2;
constexpr double eps = 0.3;

/// The regression with explicit features and its solution by dense linear algebra.
struct DenseRegression {
  explicit DenseRegression(Index left_dim)
      : rows(test::random_rows<double>(row_count, feature_count, 1)), sides(feature_count, left_dim) {
    shape.dim = feature_count;
    shape.left_dim = left_dim;
    shape.rank = factor_count;
    shape.diagonal = left_dim > 0 ? Diagonal::tied : Diagonal::free;
    Random random(5, 0);
    U = sides.orthonormal_sides<double>(random_normal<double>(random, feature_count, factor_count));
    strengths << 2, 0.5;
    const auto add = [&](const Vector<double>& column, double precision) {
      features.conservativeResize(row_count, features.cols() + 1);
      features.rightCols(1) = column;
      precisions.push_back(precision);
    };
    const Matrix<double> X = rows.X;
    const Matrix<double> left = sides.left(RowMajorMatrix<double>(X.transpose())).transpose() * sides.left(U);
    const Matrix<double> right = sides.right(RowMajorMatrix<double>(X.transpose())).transpose() * sides.right(U);
    add(Vector<double>::Ones(row_count), 0);
    for (Index j = 0; j < feature_count; ++j) add(X.col(j), 0);
    for (Index j = 0; left_dim == 0 && j < feature_count; ++j) add(X.col(j).cwiseAbs2(), 0);
    for (Index c = 0; c < factor_count; ++c)
      for (Index j = 0; j < feature_count; ++j) {
        const bool is_right = left_dim > 0 && j >= left_dim;
        const double scale = std::sqrt((left_dim > 0 ? 1 : 2) * eps * strengths[c]);
        add(scale * X.col(j).cwiseProduct(is_right ? left.col(c) : right.col(c)), 1);
      }
    for (Index c = 0; c < factor_count; ++c)
      for (Index e = left_dim > 0 ? 0 : c; e < factor_count; ++e)
        add(std::sqrt(strengths[c] * strengths[e] * (left_dim > 0 || c == e ? 1 : 2)) *
                left.col(c).cwiseProduct(right.col(e)),
            1);
    scales = X.leftCols(sides.left_count())
                 .rowwise()
                 .squaredNorm()
                 .cwiseProduct(X.rightCols(sides.right_count()).rowwise().squaredNorm());
    const Vector<double> weights = (eps * eps * scales).cwiseInverse();
    Matrix<double> normal = features.transpose() * weights.asDiagonal() * features;
    normal.diagonal() += as_vector(precisions);
    const Vector<double> y = as_vector(rows.targets);
    solution = normal.ldlt().solve(features.transpose() * weights.cwiseProduct(y));
    residuals = y - features * solution;
  }

  test::OwnedRows<double> rows;
  Sides sides;
  ModelShape shape;
  RowMajorMatrix<double> U;
  Vector<double> strengths = Vector<double>(factor_count);
  Matrix<double> features = Matrix<double>(row_count, 0);
  std::vector<double> precisions;
  Vector<double> scales;
  Vector<double> solution;
  Vector<double> residuals;
};

TEST(WeightedRegression, EqualsDenseRidgeRegression) {
  for (const Index left_dim : {Index{0}, Index{3}}) {
    const DenseRegression dense(left_dim);
    WeightedRegression regression(dense.rows.dense(), dense.shape, test::pool());
    regression.set_prior(dense.U, dense.strengths, eps);
    RegressionCoefficients coefficients;
    coefficients.set_zero(feature_count, factor_count, regression.core_size(), regression.has_squares());
    regression.solve(coefficients, 1e-12, 1000);
    EXPECT_NEAR(coefficients.intercept, dense.solution[0], 1e-6);
    for (Index j = 0; j < feature_count; ++j) EXPECT_NEAR(coefficients.features(j, 0), dense.solution[1 + j], 1e-6);
    const Vector<double> core = dense.solution.tail(regression.core_size());
    EXPECT_LT((coefficients.core - core).norm(), 1e-6);
  }
}

/// M = U C U' + tangent part + sum_i h_i x_i z_i' with h = residual / scale.
TEST(WeightedRegression, EstimateEqualsDenseMatrix) {
  for (const Index left_dim : {Index{0}, Index{3}}) {
    const DenseRegression dense(left_dim);
    WeightedRegression regression(dense.rows.dense(), dense.shape, test::pool());
    regression.set_prior(dense.U, dense.strengths, eps);
    RegressionCoefficients coefficients;
    coefficients.set_zero(feature_count, factor_count, regression.core_size(), regression.has_squares());
    regression.solve(coefficients, 1e-12, 1000);
    const Sides& sides = dense.sides;
    const Vector<double> h = dense.residuals.cwiseQuotient(dense.scales);
    const Matrix<double> X = dense.rows.X;
    Matrix<double> M = X.leftCols(sides.left_count()).transpose() * h.asDiagonal() * X.rightCols(sides.right_count());
    const RowMajorMatrix<double> V = coefficients.features.rightCols(factor_count);
    const double symmetry = left_dim > 0 ? 1 : 0.5;
    for (Index c = 0; c < factor_count; ++c) {
      const double scale = symmetry * std::sqrt((left_dim > 0 ? 1 : 2) * eps * dense.strengths[c]);
      M += scale * (sides.left(V).col(c) * sides.right(dense.U).col(c).transpose() +
                    sides.left(dense.U).col(c) * sides.right(V).col(c).transpose());
      for (Index e = left_dim > 0 ? 0 : c; e < factor_count; ++e) {
        const double value = coefficients.core[regression.core_index(c, e)] *
                             std::sqrt(dense.strengths[c] * dense.strengths[e] * (left_dim > 0 || c == e ? 1 : 2));
        const Matrix<double> term = sides.left(dense.U).col(c) * sides.right(dense.U).col(e).transpose();
        M += left_dim > 0 ? Matrix<double>(value * term) : Matrix<double>(value / 2 * (term + term.transpose()));
      }
    }
    Random random(7, 0);
    const RowMajorMatrix<double> Z = random_normal<double>(random, feature_count, 3);
    const RowMajorMatrix<double> product = regression.multiply_estimate(coefficients, Z);
    EXPECT_LT((sides.left(product) - M * sides.right(Z)).norm(), 1e-6);
    if (left_dim > 0) {
      EXPECT_LT((sides.right(product) - M.transpose() * sides.left(Z)).norm(), 1e-6);
    }
  }
}

}  // namespace
}  // namespace dyad
