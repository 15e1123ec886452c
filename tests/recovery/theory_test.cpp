#include "recovery/theory.h"

#include <cmath>

#include <gtest/gtest.h>

#include "recovery/concentration.h"
#include "support.h"

namespace dyad::theory_test {
namespace {

/// Size and noise of a planted problem, and the relative distance of M from M*, which determines which constant is the
/// largest.
struct Case {
  Index dim;
  double noise;
  double residual;
  double distance;
};

/// Compares all constants with a computation that forms all d x d matrices.
class Theory : public testing::TestWithParam<Case> {};

TEST_P(Theory, ConstantsEqualDenseComputation) {
  const Index dim = GetParam().dim;
  constexpr Index n = 900;
  PlantedOptions options;
  options.dim = dim;
  options.rank = 2;
  options.noise = GetParam().noise;
  options.residual = GetParam().residual;
  const PlantedProblem problem(options);
  const Model<double>& truth = problem.truth();
  Model<double> model = test::random_model<double>(dim, 2, 2);
  model.intercept = 0;
  model.factors = truth.factors;
  as_vector(model.spectrum) = (1 - GetParam().distance) * as_vector(truth.spectrum);
  const Matrix<double> D = test::dense_interactions(truth) - test::dense_interactions(model);
  const Vector<double> dw = as_vector(truth.weights) - as_vector(model.weights);
  RecoveryPoint before;
  before.error_M = spectral_norm(D);
  before.error_w = dw.norm();
  before.tan_theta = 1;
  ThreadPool pool(2);
  DenseBlock<double> block;
  problem.generate(0, n, pool, block);
  const Batch<double> batch = [&](const std::function<void(const Rows<double>&)>& visit) { visit(block.view()); };
  const TheoryPoint theory = measure_theory(model, problem, before, batch, pool);

  const Matrix<double> I = Matrix<double>::Identity(dim, dim);
  const RowMajorMatrix<double> X = as_row_major(block.values, n, dim);
  const ConcentrationErrors errors = measure_concentration(X, D, dw);
  const double ci_rip = spectral_norm(errors.ci_rip) / before.error_M;
  EXPECT_NEAR(theory.ci_rip, ci_rip, 0.01 * ci_rip);

  const auto H = [&](const Vector<double>& r) {
    return Matrix<double>(X.transpose() * r.asDiagonal() * X / (2.0 * n) - r.mean() / 2 * I);
  };
  const Vector<double> signal = X * dw + (X * D).cwiseProduct(X).rowwise().sum();
  const double error_w = (X.transpose() * signal / n - dw).norm();
  const double delta = std::max(std::max(spectral_norm(H(signal) - D), error_w) / before.error(), ci_rip);
  EXPECT_NEAR(theory.delta, delta, 0.01 * delta);

  const Vector<double> noise = as_vector(block.targets) - test::brute_force_predictions(truth, X);
  const Matrix<double> M_perp = problem.residual_times(I);
  if (options.noise == 0) {
    const Vector<double> residual = (X * M_perp).cwiseProduct(X).rowwise().sum();
    EXPECT_LT((noise - residual).norm(), 1e-9);
  }
  const double r = std::max(spectral_norm(H(noise) - M_perp), (X.transpose() * noise / n).norm());
  EXPECT_NEAR(theory.noise, r, 0.01 * r + 1e-14);
  EXPECT_LE(spectral_norm(M_perp), GetParam().residual + 1e-12);
}

// The last case has more features than the largest matrix that measure_theory() forms.
INSTANTIATE_TEST_SUITE_P(Cases, Theory,
                         testing::Values(Case{12, 0, 0, 1}, Case{12, 0, 0, 0.1}, Case{12, 0, 0, 0.001},
                                         Case{12, 0.3, 0, 0.1}, Case{12, 0, 0.05, 0.1}, Case{12, 0.3, 0.05, 0.1},
                                         Case{260, 0.3, 0.05, 0.1}));

/// Runs Algorithm 1 with noise or a residual spectrum and batches that satisfy the assumptions of the noisy theorem.
class NoisyTheory : public testing::TestWithParam<Case> {};

TEST_P(NoisyTheory, BoundsMeasuredErrors) {
  RecoverOptions options;
  options.problem.dim = GetParam().dim;
  options.problem.rank = 1;
  options.problem.noise = GetParam().noise;
  options.problem.residual = GetParam().residual;
  options.theory = true;
  options.batch = 60'000;
  options.rows = 7 * 60'000;
  for (const Update update : {Update::one_scan, Update::paper}) {
    options.update = update;
    const std::vector<RecoveryPoint> trace = recover(options).trace;
    // The one-scan update starts from random factors, the paper's update from a singular value decomposition.
    const std::size_t first = update == Update::paper ? 1 : 3;
    double max_rate = 0;
    double max_floor = 0;
    for (std::size_t t = first; t < trace.size(); ++t) {
      ASSERT_TRUE(trace[t].theory && trace[t].theory->is_applicable) << t;
      const TheoryPoint& theory = *trace[t].theory;
      EXPECT_LE(trace[t].tan_theta, theory.alpha_bound);
      EXPECT_LE(trace[t].error_w, theory.beta_bound);
      EXPECT_LE(trace[t].error_M, theory.gamma_bound);
      EXPECT_LE(trace[t].tan_theta + theory.index_weight * trace[t].error(), theory.index_bound);
      EXPECT_FALSE(theory.is_vacuous());
      max_rate = std::max(max_rate, theory.rate);
      max_floor = std::max(max_floor, theory.index_floor);
    }
    // Noisy theorem: f_t <= q^t (f_0 - F) + F with f_0 <= 2.
    double bound = 2;
    for (std::size_t t = first; t < trace.size(); ++t) {
      bound = max_rate * std::max(0.0, bound - max_floor) + max_floor;
      EXPECT_LE(trace[t].tan_theta + trace[t].theory->index_weight * trace[t].error(), bound) << t;
    }
    EXPECT_GT(trace.back().error(), 1e-5);  // the error does not converge to 0
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NoisyTheory,
                         testing::Values(Case{6, 0.1, 0, 0}, Case{6, 0, 0.02, 0}, Case{6, 0.05, 0.02, 0}));

}  // namespace
}  // namespace dyad::theory_test
