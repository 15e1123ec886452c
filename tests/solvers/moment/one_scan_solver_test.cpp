#include <dyad/moment.h>

#include <limits>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

MomentOptions one_scan_options(const Model<double>& model) {
  MomentOptions options;
  options.shape.dim = model.dim();
  options.shape.rank = model.rank();
  options.shape.intercept = true;
  options.moments = Moments::gaussian;
  options.threads = 2;
  return options;
}

template <typename Scalar>
Model<Scalar> after_one_batch(const MomentOptions& options, const Model<Scalar>& start, const Rows<Scalar>& rows) {
  OneScanSolver<Scalar> solver(options, start);
  solver.observe(rows);
  EXPECT_TRUE(solver.update().is_accepted);
  return solver.model();
}

/// U Y' + Y U' - U (U'Y) U' with Y = (M + dM) U and dM = (sum r xx' - sum r I) / (2n), all d x d.
Eigen::MatrixXd dense_projection(const Model<double>& model, const test::OwnedRows<double>& rows) {
  const auto n = static_cast<double>(rows.X.rows());
  const Eigen::VectorXd r = as_vector(rows.targets) - test::brute_force_predictions(model, rows.X);
  const Eigen::MatrixXd H = rows.X.transpose() * r.asDiagonal() * rows.X;
  const Eigen::MatrixXd dM = (H - r.sum() * Eigen::MatrixXd::Identity(H.rows(), H.cols())) / (2 * n);
  const Eigen::MatrixXd U = as_row_major(model.factors, model.dim(), model.rank());
  const Eigen::MatrixXd Y = (test::dense_interactions(model) + dM) * U;
  return U * Y.transpose() + Y * U.transpose() - U * (U.transpose() * Y) * U.transpose();
}

TEST(OneScanSolver, UpdateEqualsDenseProjection) {
  for (const auto& [dim, rank] : {std::pair<Index, Index>{12, 3}, {5, 4}, {4, 4}, {6, 1}}) {
    const auto start = test::random_model<double>(dim, rank, 1);
    const auto rows = test::random_rows<double>(200, dim, 2);
    const Eigen::MatrixXd projected = dense_projection(start, rows);
    for (const bool positive : {false, true}) {
      MomentOptions options = one_scan_options(start);
      options.shape.positive = positive;
      const auto next = after_one_batch(options, start, rows.dense());
      const Eigen::MatrixXd expected = test::brute_force_rank_k(projected, rank, positive);
      EXPECT_LT((test::dense_interactions(next) - expected).norm(), 1e-11 * projected.norm());

      const auto n = static_cast<double>(rows.X.rows());
      const Eigen::VectorXd r = as_vector(rows.targets) - test::brute_force_predictions(start, rows.X);
      EXPECT_LT((as_vector(next.weights) - as_vector(start.weights) - rows.X.transpose() * r / n).norm(), 1e-12);
      EXPECT_NEAR(next.intercept, start.intercept + r.mean() - (expected.trace() - start.mean_interaction()), 1e-11);
    }
  }
}

/// U Y_right' + Y_left V' - U (U'Y_left) V' with Y_left = (M + dM) V and Y_right = (M + dM)'U, dM = sum r xz' / n.
TEST(OneScanSolver, BilinearUpdateEqualsDenseProjection) {
  for (const auto& [left, right, rank] : {std::tuple<Index, Index, Index>{6, 9, 2}, {3, 4, 3}, {1, 5, 1}}) {
    const auto start = test::random_model<double>(left + right, rank, 1, left);
    const auto rows = test::random_rows<double>(200, left + right, 2);
    MomentOptions options = one_scan_options(start);
    options.shape.left_dim = left;
    const auto next = after_one_batch(options, start, rows.dense());

    const Eigen::VectorXd r = as_vector(rows.targets) - test::brute_force_predictions(start, rows.X);
    const Eigen::MatrixXd dM = rows.X.leftCols(left).transpose() * r.asDiagonal() * rows.X.rightCols(right) / 200;
    const Eigen::MatrixXd target = test::dense_interactions(start) + dM;
    const Eigen::MatrixXd U = as_row_major(start.factors, left + right, rank).topRows(left);
    const Eigen::MatrixXd V = as_row_major(start.factors, left + right, rank).bottomRows(right);
    const Eigen::MatrixXd projected =
        U * U.transpose() * target + target * V * V.transpose() - U * U.transpose() * target * V * V.transpose();
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(projected, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const Eigen::MatrixXd expected = svd.matrixU().leftCols(rank) * svd.singularValues().head(rank).asDiagonal() *
                                     svd.matrixV().leftCols(rank).transpose();
    EXPECT_LT((test::dense_interactions(next) - expected).norm(), 1e-11 * projected.norm());
    EXPECT_LT((as_vector(next.weights) - as_vector(start.weights) - rows.X.transpose() * r / 200).norm(), 1e-12);
    EXPECT_NEAR(next.intercept, start.intercept + r.mean(), 1e-12);
  }
}

TEST(OneScanSolver, SparseRowsGiveTheModelOfDenseRows) {
  const auto start = test::random_model<double>(10, 2, 1);
  const auto rows = test::random_rows<double>(300, 10, 2, 0.2);
  const auto dense = after_one_batch(one_scan_options(start), start, rows.dense());
  const auto sparse = after_one_batch(one_scan_options(start), start, rows.sparse());
  EXPECT_LT((test::dense_interactions(dense) - test::dense_interactions(sparse)).norm(), 1e-12);
  EXPECT_LT((as_vector(dense.weights) - as_vector(sparse.weights)).norm(), 1e-12);
}

// An orthogonal transformation Q of the features transforms the model in the same way: M becomes QMQ', w becomes Qw.
TEST(OneScanSolver, IsEquivariantUnderOrthogonalTransformations) {
  const Index dim = 9;
  const auto start = test::random_model<double>(dim, 3, 1);
  const auto rows = test::random_rows<double>(400, dim, 2);
  Random random(3, 0);
  Eigen::MatrixXd permutation = Eigen::MatrixXd::Zero(dim, dim);
  for (Index j = 0; j < dim; ++j) permutation(j, (j * 2 + 5) % dim) = 1;
  const Eigen::MatrixXd rotation = random_orthonormal<double>(random, dim, dim);

  const auto plain = after_one_batch(one_scan_options(start), start, rows.dense());
  for (const Eigen::MatrixXd& Q : {permutation, rotation}) {
    Model<double> transformed_start = start;
    as_vector(transformed_start.weights) = Q * as_vector(start.weights);
    as_row_major(transformed_start.factors, dim, 3) = Q * as_row_major(start.factors, dim, 3);
    const test::OwnedRows<double> transformed_rows(rows.X * Q.transpose(), rows.targets);
    const auto transformed = after_one_batch(one_scan_options(start), transformed_start, transformed_rows.dense());
    EXPECT_LT((test::dense_interactions(transformed) - Q * test::dense_interactions(plain) * Q.transpose()).norm(),
              1e-11);
    EXPECT_LT((as_vector(transformed.weights) - Q * as_vector(plain.weights)).norm(), 1e-12);
    EXPECT_NEAR(transformed.intercept, plain.intercept, 1e-12);
  }
}

TEST(OneScanSolver, SinglePrecisionIsCloseToDouble) {
  const auto start = test::random_model<double>(20, 3, 1);
  Model<float> start_float(20, 3);
  start_float.intercept = static_cast<float>(start.intercept);
  as_vector(start_float.weights) = as_vector(start.weights).cast<float>();
  as_vector(start_float.factors) = as_vector(start.factors).cast<float>();
  as_vector(start_float.spectrum) = as_vector(start.spectrum).cast<float>();
  const auto rows = test::random_rows<double>(3000, 20, 2);
  std::vector<float> targets(rows.targets.begin(), rows.targets.end());
  const test::OwnedRows<float> rows_float(rows.X.cast<float>(), targets);

  const auto model = after_one_batch(one_scan_options(start), start, rows.dense());
  const auto model_float = after_one_batch(one_scan_options(start), start_float, rows_float.dense());
  EXPECT_LT((test::dense_interactions(model_float).cast<double>() - test::dense_interactions(model)).norm(), 1e-4);
  EXPECT_LT((as_vector(model_float.weights).cast<double>() - as_vector(model.weights)).norm(), 1e-4);
}

TEST(OneScanSolver, RecoversPlantedModelInSinglePrecision) {
  const Index dim = 20;
  const auto truth = test::random_model<float>(dim, 2, 5);
  MomentOptions options;
  options.shape.dim = dim;
  options.shape.rank = 2;
  options.shape.intercept = true;
  OneScanSolver<float> solver(options);
  for (std::uint64_t batch = 0; batch < 40; ++batch) {
    auto rows = test::random_rows<float>(800, dim, 100 + batch);
    truth.predict(rows.dense(), rows.targets);
    solver.observe(rows.dense());
    EXPECT_TRUE(solver.update().is_accepted);
  }
  EXPECT_LT((test::dense_interactions(solver.model()) - test::dense_interactions(truth)).norm(), 1e-4F);
  EXPECT_LT((as_vector(solver.model().weights) - as_vector(truth.weights)).norm(), 1e-4F);
  EXPECT_NEAR(solver.model().intercept, truth.intercept, 1e-4F);
}

TEST(OneScanSolver, DisabledTermsStayZero) {
  const auto rows = test::random_rows<double>(100, 4, 1);
  MomentOptions options;
  options.shape.dim = 4;
  options.shape.rank = 1;
  options.shape.linear = false;
  OneScanSolver<double> solver(options);
  solver.observe(rows.dense());
  solver.update();
  EXPECT_EQ(as_vector(solver.model().weights).norm(), 0);
  EXPECT_EQ(solver.model().intercept, 0);
  EXPECT_NE(solver.model().spectrum[0], 0);
}

TEST(OneScanSolver, OverflowedBatchDoesNotChangeTheModel) {
  const auto start = test::random_model<double>(4, 2, 1);
  OneScanSolver<double> solver(one_scan_options(start), start);
  auto rows = test::random_rows<double>(10, 4, 1);
  rows.targets[3] = 1e300;
  solver.observe(rows.dense());
  const BatchReport report = solver.update();
  EXPECT_FALSE(report.is_accepted);
  EXPECT_EQ(report.rows, 10);
  EXPECT_EQ(solver.model().factors, start.factors);
}

TEST(OneScanSolver, InvalidBlockDiscardsTheBatchAndKeepsTheModel) {
  const auto start = test::random_model<double>(4, 2, 1);
  const auto good = test::random_rows<double>(50, 4, 1);
  auto bad = test::random_rows<double>(50, 4, 2);
  bad.X(10, 1) = std::numeric_limits<double>::quiet_NaN();
  OneScanSolver<double> solver(one_scan_options(start), start);
  solver.observe(good.dense());
  EXPECT_THROW(solver.observe(bad.dense()), std::invalid_argument);
  EXPECT_EQ(solver.model().factors, start.factors);
  solver.observe(good.dense());
  EXPECT_EQ(solver.update().rows, 50);
  EXPECT_EQ(solver.model().factors, after_one_batch(one_scan_options(start), start, good.dense()).factors);
}

TEST(OneScanSolver, ThrowsForInvalidOptions) {
  const auto options_for = [](Index dim, Index rank, int threads) {
    MomentOptions options;
    options.shape.dim = dim;
    options.shape.rank = rank;
    options.threads = threads;
    return options;
  };
  EXPECT_THROW(OneScanSolver<double>(options_for(0, 1, 1)), std::invalid_argument);
  EXPECT_THROW(OneScanSolver<double>(options_for(5, 0, 1)), std::invalid_argument);
  EXPECT_THROW(OneScanSolver<double>(options_for(5, 6, 1)), std::invalid_argument);
  EXPECT_THROW(OneScanSolver<double>(options_for(5, 5, -1)), std::invalid_argument);
  EXPECT_THROW(OneScanSolver<double>(options_for(5, 2, 1), test::random_model<double>(5, 3, 1)), std::invalid_argument);
  EXPECT_THROW(OneScanSolver<double>(options_for(5, 2, 1), Model<double>(5, 2)), std::invalid_argument);
  MomentOptions bilinear = options_for(5, 2, 1);
  bilinear.shape.left_dim = 2;
  EXPECT_NO_THROW(OneScanSolver<double>{bilinear});
  bilinear.shape.rank = 3;
  EXPECT_THROW(OneScanSolver<double>{bilinear}, std::invalid_argument);
  bilinear.shape.rank = 2;
  bilinear.shape.positive = true;
  EXPECT_THROW(OneScanSolver<double>{bilinear}, std::invalid_argument);
  bilinear.shape.left_dim = 5;
  EXPECT_THROW(OneScanSolver<double>{bilinear}, std::invalid_argument);
  OneScanSolver<double> solver(options_for(5, 2, 1));
  EXPECT_THROW(solver.update(), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
