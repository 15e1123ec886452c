#include "training/cached_rows/laplace_covariance.h"

#include <gtest/gtest.h>

#include "planted_rows.h"
#include "solvers/gauss_newton/gauss_newton.h"
#include "support.h"
#include "training/cached_rows/residuals.h"

namespace dyad {
namespace {

using test::PlantedRows;

PlantedOptions small_problem(Kind kind, std::uint64_t seed) {
  PlantedOptions problem = test::make_planted(kind, 2, seed);
  problem.dim = 6;
  if (kind == Kind::bilinear) problem.right_dim = 5;
  problem.noise = 0.05;
  return problem;
}

SignedFactors<double> fit_from_truth(PlantedRows& rows) {
  const Diagonal diagonal = rows.newton.shape.diagonal;
  const auto start = SignedFactors<double>::of(rows.planted.truth(), diagonal, 0);
  return fit_gauss_newton(rows.observed(), rows.newton, rows.pool, &start).parameters;
}

/// Intervals of 1.96 standard errors cover the entries of M in 95% of the cases. Entries of one fit are correlated, so
/// that the coverage of 60 fits has a standard error of at most sqrt(0.05 * 0.95 / 60) = 2.8%.
TEST(LaplaceCovariance, IntervalsCoverTheTruth) {
  for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::phase, Kind::bilinear}) {
    double covered = 0;
    double total = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      PlantedRows rows(small_problem(kind, seed), 6);
      const SignedFactors<double> fit = fit_from_truth(rows);
      const LaplaceCovariance covariance(rows.observed(), rows.newton.shape, fit, 0.05 * 0.05);
      ASSERT_TRUE(covariance.is_identifiable());
      const Matrix<double> error =
          test::dense_interactions(fit.model()) - test::dense_interactions(rows.planted.truth());
      covered += static_cast<double>((error.array().abs() < 1.96 * covariance.matrix_errors().array()).count());
      total += static_cast<double>(error.size());
    }
    EXPECT_NEAR(covered / total, 0.95, 5 * 0.028) << static_cast<int>(kind);
  }
}

/// M does not change under A -> A exp(K diag(signs)) with skew-symmetric K, and neither do its standard errors.
TEST(LaplaceCovariance, StandardErrorsOfMAreInvariant) {
  PlantedOptions problem = small_problem(Kind::sensing, 1);
  problem.signs = Signs::positive;
  PlantedRows rows(problem, 6);
  SignedFactors<double> fit = fit_from_truth(rows);
  const LaplaceCovariance before(rows.observed(), rows.newton.shape, fit, 1);
  Matrix<double> rotation(2, 2);
  rotation << std::cos(0.7), -std::sin(0.7), std::sin(0.7), std::cos(0.7);
  fit.A *= rotation;
  const LaplaceCovariance after(rows.observed(), rows.newton.shape, fit, 1);
  EXPECT_LT((before.matrix_errors() - after.matrix_errors()).norm(), 1e-8 * before.matrix_errors().norm());
}

TEST(LaplaceCovariance, ZeroAndRepeatedColumnsAreNotIdentifiable) {
  for (const bool is_repeated : {false, true}) {
    PlantedRows rows(small_problem(Kind::gfm, 2), 4);
    const Index d = rows.newton.shape.dim;
    for (std::size_t i = 0; i < rows.block.targets.size(); ++i) {
      double* x = rows.block.values.data() + static_cast<Index>(i) * d;
      x[2] = is_repeated ? x[4] : 0;
    }
    const auto truth = SignedFactors<double>::of(rows.planted.truth(), Diagonal::tied, 0);
    const LaplaceCovariance covariance(rows.observed(), rows.newton.shape, truth, 1);
    EXPECT_FALSE(covariance.is_identifiable());
  }
}

/// The linear approximation of leave-one-out residuals agrees with fits that exclude the row, for small noise.
TEST(LaplaceCovariance, LeaveOneOutErrorEqualsFitsWithoutTheRow) {
  PlantedOptions problem = small_problem(Kind::gfm, 3);
  problem.noise = 1e-4;
  PlantedRows rows(problem, 1.8);
  const SignedFactors<double> fit = fit_from_truth(rows);
  const ObservedRows observed = rows.observed();
  const LaplaceCovariance covariance(observed, rows.newton.shape, fit, 1);
  const Vector<double> residuals = compute_residuals(observed, fit, rows.pool);
  double squares = 0;
  for (Index i = 0; i < observed.count(); ++i) {
    Vector<double> weights = observed.weights();
    weights[i] = 0;
    NewtonOptions options = rows.newton;
    options.exact_steps = true;
    const NewtonFit without = fit_gauss_newton(observed.with_weights(weights), options, rows.pool, &fit);
    squares += std::pow(compute_residuals(observed, without.parameters, rows.pool)[i], 2);
  }
  const double expected = squares / static_cast<double>(observed.count());
  EXPECT_NEAR(covariance.leave_one_out_error(observed, residuals), expected, 0.02 * expected);
}

}  // namespace
}  // namespace dyad
