#include <dyad/moment.h>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

Batch<double> in_blocks(const test::OwnedRows<double>& rows, Index block) {
  return [&rows, block](const std::function<void(const Rows<double>&)>& visitor) {
    for (Index first = 0; first < rows.X.rows(); first += block)
      visitor(rows.dense().slice(first, std::min(block, rows.X.rows() - first)));
  };
}

/// Gaussian rows with the predictions of `truth` as targets.
test::OwnedRows<double> measure(const Model<double>& truth, Index count, std::uint64_t seed) {
  auto rows = test::random_rows<double>(count, truth.dim(), seed);
  as_vector(rows.targets) = test::brute_force_predictions(truth, rows.X);
  return rows;
}

/// Algorithm 1 with dense matrices.
struct DenseAlgorithm {
  Eigen::MatrixXd U;
  Eigen::MatrixXd V;
  Eigen::VectorXd w;
  double b = 0;

  [[nodiscard]] Eigen::MatrixXd M() const { return (U * V.transpose() + V * U.transpose()) / 2; }

  void advance(const test::OwnedRows<double>& rows) {
    const auto n = static_cast<double>(rows.X.rows());
    const Eigen::MatrixXd M_before = M();
    const Eigen::VectorXd r = as_vector(rows.targets) - rows.X * w -
                              (rows.X * M_before).cwiseProduct(rows.X).rowwise().sum() -
                              Eigen::VectorXd::Constant(rows.X.rows(), b);
    const Eigen::MatrixXd H1 = rows.X.transpose() * r.asDiagonal() * rows.X / (2 * n);
    const Eigen::MatrixXd target = H1 - 0.5 * r.mean() * Eigen::MatrixXd::Identity(H1.rows(), H1.cols()) + M_before;
    U = orthonormalize<double>(target * U);
    V = target * U;
    w += rows.X.transpose() * r / n;
    b += r.mean() - (M().trace() - M_before.trace());
  }
};

MomentOptions paper_options() {
  MomentOptions options;
  options.shape.dim = 10;
  options.shape.rank = 2;
  options.shape.intercept = true;
  options.moments = Moments::gaussian;
  options.threads = 2;
  return options;
}

TEST(PaperSolver, StartEqualsTruncatedSvd) {
  auto truth = test::random_model<double>(10, 2, 1);
  truth.spectrum = {2, -1.5};
  const auto rows = measure(truth, 4000, 2);
  PaperSolver<double> solver(paper_options());
  solver.update(in_blocks(rows, 700));

  const Eigen::VectorXd y = as_vector(rows.targets);
  const Eigen::MatrixXd H =
      rows.X.transpose() * y.asDiagonal() * rows.X / (2.0 * 4000) - 0.5 * y.mean() * Eigen::MatrixXd::Identity(10, 10);
  Eigen::MatrixXd top = Eigen::JacobiSVD<Eigen::MatrixXd>(H, Eigen::ComputeThinU).matrixU().leftCols(2);
  const Eigen::MatrixXd U = as_row_major(solver.model().factors, 10, 2);
  EXPECT_LT((U - top * (top.transpose() * U)).norm(), 0.05);
  EXPECT_EQ(as_vector(solver.model().spectrum).norm(), 0);
  EXPECT_EQ(as_vector(solver.model().weights).norm(), 0);
}

TEST(PaperSolver, IteratesEqualThoseOfAlgorithm1) {
  const auto truth = test::random_model<double>(10, 2, 1);
  PaperSolver<double> solver(paper_options());
  const auto first = measure(truth, 500, 2);
  solver.update(in_blocks(first, 500));
  DenseAlgorithm expected{as_row_major(solver.model().factors, 10, 2), Eigen::MatrixXd::Zero(10, 2),
                          Eigen::VectorXd::Zero(10), 0};
  for (std::uint64_t t = 1; t <= 4; ++t) {
    const auto rows = measure(truth, 300, 2 + t);
    EXPECT_TRUE(solver.update(in_blocks(rows, 77)).is_accepted);
    expected.advance(rows);
    const Eigen::MatrixXd leading = test::brute_force_rank_k(expected.M(), 2);
    EXPECT_LT((test::dense_interactions(solver.model()) - leading).norm(), 1e-10 * leading.norm()) << t;
    EXPECT_LT((as_vector(solver.model().weights) - expected.w).norm(), 1e-10) << t;
    EXPECT_NEAR(solver.model().intercept, expected.b, 1e-10) << t;
  }
}

// M = UV': U+ = QR((M + dM) V), V+ = (M + dM)'U+.
TEST(PaperSolver, BilinearIteratesEqualThoseOfTheAsymmetricAlgorithm) {
  constexpr Index left = 4;
  const auto truth = test::random_model<double>(10, 2, 1, left);
  MomentOptions options = paper_options();
  options.shape.left_dim = left;
  PaperSolver<double> solver(options);
  solver.update(in_blocks(measure(truth, 500, 2), 500));
  Eigen::MatrixXd directions = as_row_major(solver.model().factors, 10, 2).bottomRows(10 - left);
  Eigen::MatrixXd M = Eigen::MatrixXd::Zero(left, 10 - left);
  Model<double> before = solver.model();
  for (std::uint64_t t = 1; t <= 4; ++t) {
    const auto rows = measure(truth, 300, 2 + t);
    const Eigen::VectorXd r = as_vector(rows.targets) - test::brute_force_predictions(before, rows.X);
    EXPECT_TRUE(solver.update(in_blocks(rows, 77)).is_accepted);
    const Eigen::MatrixXd target =
        M + rows.X.leftCols(left).transpose() * r.asDiagonal() * rows.X.rightCols(10 - left) / 300;
    const Eigen::MatrixXd U = orthonormalize<double>(target * directions);
    const Eigen::MatrixXd V = target.transpose() * U;
    M = U * V.transpose();
    directions = orthonormalize<double>(V);
    before = solver.model();
    EXPECT_LT((test::dense_interactions(before) - M).norm(), 1e-10 * M.norm()) << t;
  }
}

TEST(PaperSolver, ModelIsThePositivePartIfRequested) {
  auto truth = test::random_model<double>(10, 2, 1);
  truth.spectrum = {1, -2};
  MomentOptions options = paper_options();
  options.shape.positive = true;
  PaperSolver<double> solver(options);
  for (std::uint64_t t = 0; t < 3; ++t) solver.update(in_blocks(measure(truth, 400, 2 + t), 400));
  const Eigen::MatrixXd full = test::dense_interactions(solver.full_model());
  EXPECT_LT(full.selfadjointView<Eigen::Lower>().eigenvalues().minCoeff(), -1);
  EXPECT_LT((test::dense_interactions(solver.model()) - test::brute_force_rank_k(full, 2, true)).norm(), 1e-11);
}

TEST(PaperSolver, TruncationKeepsCoefficientsOfSquares) {
  for (const Diagonal diagonal : {Diagonal::zero, Diagonal::free}) {
    const auto truth = test::random_model<double>(10, 2, 1);
    MomentOptions options = paper_options();
    options.shape.diagonal = diagonal;
    PaperSolver<double> solver(options);
    for (std::uint64_t t = 0; t < 3; ++t) solver.update(in_blocks(measure(truth, 400, 2 + t), 400));
    const auto coefficients = [](const Model<double>& model) {
      return Eigen::VectorXd(test::dense_interactions(model).diagonal() + as_vector(model.squares));
    };
    EXPECT_GT(test::dense_interactions(solver.model()).diagonal().norm(), 0.1);
    EXPECT_LT((coefficients(solver.model()) - coefficients(solver.full_model())).norm(), 1e-12);
    EXPECT_EQ(coefficients(solver.model()).norm() < 1e-12, diagonal == Diagonal::zero);
  }
}

TEST(PaperSolver, ReadsBatchesAfterTheFirstTwice) {
  const auto truth = test::random_model<double>(10, 2, 1);
  PaperSolver<double> solver(paper_options());
  const auto rows = measure(truth, 500, 2);
  int passes = 0;
  const Batch<double> counted = [&](const std::function<void(const Rows<double>&)>& visitor) {
    ++passes;
    visitor(rows.dense());
  };
  solver.update(counted);
  EXPECT_GE(passes, 2);
  passes = 0;
  solver.update(counted);
  EXPECT_EQ(passes, 2);
}

TEST(PaperSolver, RecoversFullRankMatrix) {
  MomentOptions options = paper_options();
  options.shape.dim = 4;
  options.shape.rank = 4;
  const auto truth = test::random_model<double>(4, 4, 3);
  PaperSolver<double> solver(options);
  for (std::uint64_t t = 0; t < 30; ++t) solver.update(in_blocks(measure(truth, 600, 10 + t), 600));
  EXPECT_LT((test::dense_interactions(solver.model()) - test::dense_interactions(truth)).norm(), 1e-6);
}

TEST(PaperSolver, ThrowsForEmptyBatch) {
  PaperSolver<double> solver(paper_options());
  EXPECT_THROW(solver.update([](const std::function<void(const Rows<double>&)>&) {}), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
