#include "recovery/concentration.h"

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "linalg/decompositions.h"
#include "support.h"

// The shifted CI-RIP theorem, the five concentration lemmas and the appendix of Lin and Ye (2016), checked by
// simulation. Expectations of polynomials of Gaussian features are known exactly, so that each lemma is checked by the
// mean of its squared error over independent batches, within four standard errors.

namespace dyad::concentration_test {
namespace {

constexpr Index dim = 10;
constexpr double d = dim;
constexpr double max_standard_errors = 4;

/// Sample mean with its standard error.
struct Estimate {
  double mean = 0;
  double standard_error = 0;
};

Estimate average(int samples, const std::function<double(int)>& draw) {
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < samples; ++i) {
    const double value = draw(i);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / samples;
  return {mean, std::sqrt((squares / samples - mean * mean) / (samples - 1))};
}

void expect_mean(const Estimate& estimate, double expected) {
  EXPECT_NEAR(estimate.mean, expected, max_standard_errors * estimate.standard_error);
  EXPECT_LT(estimate.standard_error, 0.05 * expected);
}

RowMajorMatrix<double> gaussian_rows(Index n, int seed) {
  Random random(static_cast<std::uint64_t>(seed), 0);
  return random_normal<double>(random, n, dim);
}

/// Fixed problem: M of rank 2 with a trace, and w.
class Concentration : public testing::Test {
 protected:
  Concentration() {
    Model<double> model = test::random_model<double>(dim, 2, 1);
    model.spectrum = {1, -0.6};
    M = test::dense_interactions(model);
    w = as_vector(model.weights);
    trace = M.trace();
    frobenius_square = M.squaredNorm();
  }

  /// n times the mean of the squared error over 1200 batches of n = 100 rows.
  [[nodiscard]] Estimate scaled_square(const std::function<double(const ConcentrationErrors&)>& square) const {
    return average(1200, [&](int seed) { return 100 * square(measure_concentration(gaussian_rows(100, seed), M, w)); });
  }

  Matrix<double> M;
  Vector<double> w;
  double trace = 0;
  double frobenius_square = 0;
};

// E[B^2] = (d + 6) ((tr^2 + 2 |M|_F^2) I + 4 tr M + 8 M^2) for B = (x'Mx) xx', by Stein's lemma.
TEST_F(Concentration, CiRipErrorHasTheVarianceOfItsTerms) {
  const Matrix<double> I = Matrix<double>::Identity(dim, dim);
  const Matrix<double> second_moment =
      (d + 6) * ((trace * trace + 2 * frobenius_square) * I + 4 * trace * M + 8 * M * M);
  const Matrix<double> expectation = 2 * M + trace * I;
  const Estimate estimate = scaled_square([](const auto& errors) { return errors.ci_rip.squaredNorm(); });
  expect_mean(estimate, (second_moment - expectation * expectation).trace() / 4);
}

TEST_F(Concentration, TraceErrorHasVarianceTwiceTheSquaredFrobeniusNorm) {
  expect_mean(scaled_square([](const auto& errors) { return errors.trace * errors.trace; }), 2 * frobenius_square);
}

TEST_F(Concentration, MeanErrorHasTheSquaredNormOfTheWeights) {
  expect_mean(scaled_square([](const auto& errors) { return errors.mean * errors.mean; }), w.squaredNorm());
}

// E[(w'x)^2 |x|^2 xx'] = (d + 4) (|w|^2 I + 2ww'). The paper prints d |w|^2 I - diag(w*w) + 2d ww'.
TEST_F(Concentration, LinearErrorHasTheCorrectedVariance) {
  const Estimate estimate = scaled_square([](const auto& errors) { return errors.linear.squaredNorm(); });
  expect_mean(estimate, (d + 4) * (d + 2) * w.squaredNorm());
  const double printed = (d * d - 1 + 2 * d) * w.squaredNorm();
  EXPECT_GT(estimate.mean - printed, max_standard_errors * estimate.standard_error);
}

TEST_F(Concentration, QuadraticErrorHasTheVarianceOfItsTerms) {
  expect_mean(scaled_square([](const auto& errors) { return errors.quadratic.squaredNorm(); }),
              (d + 4) * (trace * trace + 2 * frobenius_square));
}

TEST_F(Concentration, CovarianceErrorHasTheVarianceOfItsTerms) {
  expect_mean(scaled_square([](const auto& errors) { return errors.covariance.squaredNorm(); }), d * (d + 1));
}

TEST_F(Concentration, SpectralErrorsHalveWithFourTimesTheRows) {
  using Errors = std::array<double, 4>;
  const auto mean_errors = [&](Index n) {
    constexpr int batches = 60;
    std::array<std::vector<double>, 4> samples;
    for (int seed = 0; seed < batches; ++seed) {
      const ConcentrationErrors errors = measure_concentration(gaussian_rows(n, seed), M, w);
      const Errors norms{spectral_norm(errors.ci_rip), spectral_norm(errors.linear), errors.quadratic.norm(),
                         spectral_norm(errors.covariance)};
      for (std::size_t i = 0; i < norms.size(); ++i) samples[i].push_back(norms[i]);
    }
    std::array<Estimate, 4> estimates;
    for (std::size_t i = 0; i < samples.size(); ++i)
      estimates[i] = average(batches, [&](int seed) { return samples[i][static_cast<std::size_t>(seed)]; });
    return estimates;
  };
  const auto few = mean_errors(1000);
  const auto many = mean_errors(4000);
  for (std::size_t i = 0; i < few.size(); ++i) {
    const double standard_error =
        2 * std::hypot(few[i].standard_error / few[i].mean, many[i].standard_error / many[i].mean);
    EXPECT_NEAR(few[i].mean / many[i].mean, 2, max_standard_errors * standard_error) << i;
    EXPECT_LT(standard_error, 0.2) << i;
  }
}

// The noise gives n E|X xi/n|^2 = xi^2 d, hence a noise term of xi sqrt(d/n). The paper prints xi/sqrt(n).
TEST_F(Concentration, NoiseTermGrowsWithTheSquareRootOfTheDimension) {
  constexpr double xi = 0.3;
  const Estimate estimate = average(500, [&](int seed) {
    Random random(static_cast<std::uint64_t>(seed), 1);
    const Vector<double> noise = xi * random_normal<double>(random, 100, 1);
    return (gaussian_rows(100, seed).transpose() * noise).squaredNorm() / 100;
  });
  expect_mean(estimate, xi * xi * d);
}

// |A(M)|^2/n has expectation tr(M)^2 + 2 |M|_F^2: it is quadratic in M, so that the definition of RIP needs |M|_F^2.
TEST_F(Concentration, SensingOperatorIsQuadraticInTheFrobeniusNorm) {
  for (const double scale : {1.0, 2.0}) {
    const Estimate estimate = average(500, [&](int seed) {
      const RowMajorMatrix<double> X = gaussian_rows(100, seed);
      return (X * (scale * M)).cwiseProduct(X).rowwise().sum().squaredNorm() / 100;
    });
    expect_mean(estimate, scale * scale * (trace * trace + 2 * frobenius_square));
  }
}

// Definition of CI-RIP: it holds without a shift for independent left and right vectors. For equal ones A'A(M)/n - M
// converges to M + tr(M) I.
TEST_F(Concentration, OnlyTheAsymmetricOperatorIsCiRipWithoutShift) {
  constexpr Index n = 50'000;
  const RowMajorMatrix<double> X = gaussian_rows(n, 1);
  const RowMajorMatrix<double> Z = gaussian_rows(n, 2);
  const auto unshifted = [&](const RowMajorMatrix<double>& left, const RowMajorMatrix<double>& right) {
    const Vector<double> AM = (left * M).cwiseProduct(right).rowwise().sum();
    return Matrix<double>(left.transpose() * AM.asDiagonal() * right / static_cast<double>(n) - M);
  };
  const Matrix<double> bias = M + trace * Matrix<double>::Identity(dim, dim);
  EXPECT_LT(unshifted(X, Z).norm(), 0.1);
  EXPECT_LT((unshifted(X, X) - bias).norm(), 0.2);
  EXPECT_GT(unshifted(X, X).norm(), 1);
}

// Sketch before Algorithm 1: A'(y)/(2n) - (1'y/n) I/2 is unbiased; the printed formula without 1/2 is not.
TEST_F(Concentration, HalfOfTheMeanTargetRemovesTheTrace) {
  constexpr Index n = 50'000;
  const RowMajorMatrix<double> X = gaussian_rows(n, 3);
  const Vector<double> y = (X * M).cwiseProduct(X).rowwise().sum();
  const Matrix<double> I = Matrix<double>::Identity(dim, dim);
  const Matrix<double> H1 = X.transpose() * y.asDiagonal() * X / (2.0 * n);
  EXPECT_LT(spectral_norm(H1 - y.mean() / 2 * I - M), 0.06);
  EXPECT_NEAR(spectral_norm(H1 - y.mean() * I - M), trace / 2, 0.06);
}

// Noisy concentration lemma: the printed left-hand side has the expectation M_perp + tr(M_perp) I/2, which does not
// decrease with n. It decreases if the full M* replaces M*_k.
TEST_F(Concentration, NoisyLemmaRequiresTheResidualSpectrumInTheExpectation) {
  constexpr Index n = 50'000;
  const RowMajorMatrix<double> X = gaussian_rows(n, 4);
  const Matrix<double> I = Matrix<double>::Identity(dim, dim);
  const Matrix<double> M_perp = 0.1 * I;
  const Matrix<double> full = M + M_perp;
  const Vector<double> AM = (X * full).cwiseProduct(X).rowwise().sum();
  const Matrix<double> H1 = X.transpose() * AM.asDiagonal() * X / (2.0 * n);
  EXPECT_LT(spectral_norm(H1 - full.trace() / 2 * I - full), 0.1);
  EXPECT_NEAR(spectral_norm(H1 - trace / 2 * I - M), 0.1 + 0.1 * d / 2, 0.1);
}

/// Share of 20,000 samples that exceed the bound, minus four standard errors of the allowed share.
double excess_share(double allowed, const std::function<bool(Random&)>& exceeds) {
  constexpr int samples = 20'000;
  Random random(1, 0);
  int count = 0;
  for (int i = 0; i < samples; ++i) count += exceeds(random) ? 1 : 0;
  return count / static_cast<double>(samples) - max_standard_errors * std::sqrt(allowed * (1 - allowed) / samples);
}

TEST(Appendix, SubgaussianSumsSatisfyTheTailBound) {
  const Vector<double> a = Vector<double>::LinSpaced(30, 0.1, 1);
  for (const double eta : {0.1, 0.01}) {
    const double bound = a.norm() * std::sqrt(2 * std::log(2 / eta));
    EXPECT_LE(excess_share(eta,
                           [&](Random& random) {
                             double sum = 0;
                             for (const double weight : a) sum += random.bits() >> 63 ? weight : -weight;
                             return std::abs(sum) > bound;
                           }),
              eta);
  }
}

// Corollary on sum a_i (x_i^2 - 1). The printed bound 2 sqrt(sum a_i) sqrt(2 log(2/eta)) has a Gaussian tail, and the
// sum has an exponential tail. The bound of Laurent and Massart (2000), 2 |a|_2 sqrt(t) + 2 |a|_inf t, holds.
TEST(Appendix, SquaredGaussiansNeedTheExponentialTail) {
  constexpr double eta = 1e-4;
  const double log_term = std::log(2 / eta);
  const auto tail = [](double threshold) { return std::erfc(std::sqrt((1 + threshold) / 2)); };  // P(x^2 - 1 > t)
  EXPECT_GT(tail(2 * std::sqrt(2 * log_term)), 10 * eta);
  EXPECT_LE(tail(2 * std::sqrt(log_term) + 2 * log_term), eta);
}

// Rows of -1 and 1 have |xx' - I| = d - 1 and |E(xx' - I)^2| = d - 1.
TEST(Appendix, MatrixBernsteinBoundsTheCovarianceError) {
  constexpr Index features = 5;
  constexpr Index n = 400;
  constexpr double eta = 0.05;
  const double log_term = std::log(2 * features / eta);
  const double bound = 4.0 / 3 * (features - 1) / n * log_term + 3 * std::sqrt(2.0 * (features - 1) / n * log_term);
  // Corollary: 9 eps sqrt(log(2d/eta)) with eps^2 = d/n. The paper divides the logarithm by n once more.
  const double corollary = 9 * std::sqrt(features / static_cast<double>(n) * log_term);
  const double printed_corollary = corollary / std::sqrt(static_cast<double>(n));
  const Estimate largest = average(200, [&](int seed) {
    Random random(static_cast<std::uint64_t>(seed), 0);
    RowMajorMatrix<double> X(n, features);
    for (Index i = 0; i < X.size(); ++i) X.data()[i] = random.bits() >> 63 ? 1 : -1;
    const double error =
        spectral_norm(X.transpose() * X / static_cast<double>(n) - Matrix<double>::Identity(features, features));
    EXPECT_LE(error, bound);
    EXPECT_LE(error, corollary);
    return error;
  });
  EXPECT_GT(largest.mean, 1.3 * printed_corollary);
}

}  // namespace
}  // namespace dyad::concentration_test
