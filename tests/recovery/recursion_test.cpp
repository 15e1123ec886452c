#include <cmath>

#include <gtest/gtest.h>

#include "recovery/concentration.h"
#include "recovery/theory.h"
#include "support.h"

// The perturbation lemma, the recursion lemmas and both theorems of Lin and Ye (2016), checked on random matrices with
// perturbations of the largest norm that the statements allow, and on random constants.

namespace dyad::recursion_test {
namespace {

constexpr Index dim = 8;
constexpr Index rank = 2;
const double four_root_five = 4 * std::sqrt(5.0);

Matrix<double> orthonormal(Random& random, Index rows, Index columns) {
  return random_orthonormal<double>(random, rows, columns);
}

Matrix<double> symmetric_perturbation(Random& random, double norm) {
  const Matrix<double> A = random_normal<double>(random, dim, dim);
  const Matrix<double> symmetric = A + A.transpose();
  return symmetric * (norm / spectral_norm(symmetric));
}

double uniform(Random& random, double low, double high) { return low + (high - low) * random.uniform(); }

/// Largest singular value.
double norm(const Matrix<double>& A) { return std::sqrt(spectral_norm(A.transpose() * A)); }

/// M* = basis diag(spectrum) basis' with a gap after the first k eigenvalues. The first k basis vectors are U*.
struct RandomTruth {
  Matrix<double> basis;
  Vector<double> spectrum;

  RandomTruth(Random& random, double sigma_k, double sigma_next) : basis(orthonormal(random, dim, dim)), spectrum(dim) {
    spectrum.setConstant(sigma_next);
    spectrum[0] = 1;
    spectrum[1] = sigma_k;
    for (double& value : spectrum) value *= random.bits() >> 63 ? 1 : -1;
  }
  [[nodiscard]] Matrix<double> U() const { return basis.leftCols(rank); }
  [[nodiscard]] Matrix<double> full() const { return basis * spectrum.asDiagonal() * basis.transpose(); }
  [[nodiscard]] Matrix<double> leading() const { return U() * spectrum.head(rank).asDiagonal() * U().transpose(); }
  /// tan(theta(A, U*)) = |U_perp*'A (U*'A)^-1|_2.
  [[nodiscard]] double tangent(const Matrix<double>& A) const {
    return norm(basis.rightCols(dim - rank).transpose() * A * (U().transpose() * A).inverse());
  }
  /// Orthonormal U whose largest canonical angle to U* has the given tangent.
  [[nodiscard]] Matrix<double> factors_at(Random& random, double tan_theta) const {
    Matrix<double> offset = random_normal<double>(random, dim - rank, rank);
    offset *= tan_theta / norm(offset);
    return orthonormalize<double>(U() + basis.rightCols(dim - rank) * offset);
  }
};

TEST(Recursion, QrDecompositionKeepsTheTangent) {
  Random random(1, 0);
  const RandomTruth truth(random, 0.5, 0);
  const Matrix<double> A = random_normal<double>(random, dim, rank);
  EXPECT_NEAR(truth.tangent(A), truth.tangent(orthonormalize<double>(A)), 1e-10);
}

// sin(theta) <= 2 eps / (sigma_k - sigma_{k+1}) for eps <= (sigma_k - sigma_{k+1}) / 4.
TEST(Recursion, SingularVectorsSatisfyThePerturbationLemma) {
  Random random(2, 0);
  for (int trial = 0; trial < 200; ++trial) {
    const double sigma_k = uniform(random, 0.3, 1);
    const RandomTruth truth(random, sigma_k, uniform(random, 0, 0.9 * sigma_k));
    const double gap = sigma_k - std::abs(truth.spectrum[rank]);
    const double epsilon = uniform(random, 0, gap / 4);
    const Matrix<double> perturbed = truth.full() + symmetric_perturbation(random, epsilon);
    const Matrix<double> top =
        Eigen::JacobiSVD<Matrix<double>>(perturbed, Eigen::ComputeThinU).matrixU().leftCols(rank);
    EXPECT_LE(norm(truth.basis.rightCols(dim - rank).transpose() * top), 2 * epsilon / gap);
  }
}

/// One step of Algorithm 1 from U with (H1 - h2 I/2) + M = M* + perturbation, compared with bound_errors().
class RecursionLemma : public testing::TestWithParam<double> {};

TEST_P(RecursionLemma, BoundsOneStepForLargestPerturbations) {
  Random random(3, 0);
  double largest_ratio = 0;
  for (int trial = 0; trial < 500; ++trial) {
    ProofConstants constants;
    constants.sigma_1 = 1;
    constants.sigma_k = uniform(random, 0.2, 1);
    constants.sigma_next = GetParam() * constants.sigma_k;
    const RandomTruth truth(random, constants.sigma_k, constants.sigma_next);
    RecoveryPoint before;
    before.tan_theta = uniform(random, 0, 2);
    before.error_M = 1;
    const double largest = (constants.sigma_k - constants.sigma_next) / four_root_five;  // of delta eps + r
    constants.delta = uniform(random, 0, largest);
    constants.noise = GetParam() > 0 ? (largest - constants.delta) * (1 - 1e-12) : 0;
    const TheoryPoint theory = bound_errors(constants, before);
    ASSERT_TRUE(theory.is_applicable);

    const Matrix<double> target =
        truth.full() + symmetric_perturbation(random, 2 * (constants.delta * before.error() + constants.noise));
    const Matrix<double> U = orthonormalize<double>(target * truth.factors_at(random, before.tan_theta));
    const Matrix<double> V = target * U;
    const double alpha = truth.tangent(U);
    const double gamma = spectral_norm((U * V.transpose() + V * U.transpose()) / 2 - truth.leading());
    EXPECT_LE(alpha, theory.alpha_bound);
    EXPECT_LE(gamma, theory.gamma_bound);
    EXPECT_LE(alpha + theory.index_weight * (theory.beta_bound + gamma), theory.index_bound);
    largest_ratio = std::max(largest_ratio, alpha / theory.alpha_bound);
  }
  EXPECT_GT(largest_ratio, 0.1);  // the perturbations are close to the worst case
}

INSTANTIATE_TEST_SUITE_P(ResidualSpectra, RecursionLemma, testing::Values(0.0, 0.1, 0.5));

// The printed condition delta eps <= 4 sqrt(5) sigma_k allows a perturbation that cancels M*. The corrected condition
// is delta eps <= sigma_k / (4 sqrt(5)).
TEST(Recursion, PrintedConditionOfTheRecursionLemmaIsTooWeak) {
  Random random(4, 0);
  const RandomTruth truth(random, 1, 0);
  const double delta_epsilon = 0.5;  // below 4 sqrt(5) sigma_k = 8.9, above sigma_k / (4 sqrt(5)) = 0.11
  const Matrix<double> rotated = truth.factors_at(random, 1.9);
  const Matrix<double> start = truth.factors_at(random, 0.1);
  const Matrix<double> change = rotated * rotated.transpose() - truth.leading();
  const Matrix<double> target = truth.leading() + change * (2 * delta_epsilon / norm(change));
  EXPECT_GT(truth.tangent(target * start), 0.5);
  ProofConstants constants{1, 1, 0, delta_epsilon, 0};
  RecoveryPoint before;
  before.error_M = 1;
  EXPECT_FALSE(bound_errors(constants, before).is_applicable);
}

// Theorem 1: the recursion with equality stays below [(4 sqrt(5) sigma_1/sigma_k + 3) delta]^t eps_0, and alpha below
// 2, if delta is the largest allowed value with |w*| in the denominator.
TEST(Recursion, TheoremOneSolvesTheRecursion) {
  Random random(5, 0);
  for (int trial = 0; trial < 200; ++trial) {
    const double sigma_k = uniform(random, 0.01, 1);
    const double weight_norm = uniform(random, 0, 20);
    const double delta = sigma_k / (four_root_five + 3 * sigma_k + four_root_five * weight_norm);
    const double factor = (four_root_five / sigma_k + 3) * delta;
    RecoveryPoint point;
    point.error_w = weight_norm;
    point.error_M = 1;
    point.tan_theta = 2;
    double bound = point.error();
    for (int t = 0; t < 20; ++t) {
      const TheoryPoint theory = bound_errors({1, sigma_k, 0, delta, 0}, point);
      EXPECT_TRUE(theory.is_applicable);
      EXPECT_NEAR(theory.factor, factor, 1e-12);
      point.tan_theta = theory.alpha_bound;
      point.error_w = theory.beta_bound;
      point.error_M = theory.gamma_bound;
      bound *= factor;
      EXPECT_LE(point.error(), bound * (1 + 1e-9));
    }
    EXPECT_LT(factor, 1);
  }
}

// With |w*|^2 instead of |w*|, the largest allowed delta violates the assumption of the recursion lemma for small |w*|.
TEST(Recursion, TheoremOneRequiresTheNormOfTheWeights) {
  constexpr double weight_norm = 0.5;
  const auto applies = [&](double weight_term) {
    RecoveryPoint start;
    start.error_w = weight_norm;
    start.error_M = 1;
    const double delta = 0.01 / (four_root_five + 0.03 + four_root_five * weight_term);
    return bound_errors({1, 0.01, 0, delta, 0}, start).is_applicable;
  };
  EXPECT_TRUE(applies(weight_norm));
  EXPECT_FALSE(applies(weight_norm * weight_norm));
}

// Noisy theorem: the recursion with equality satisfies f_t <= q^t (f_0 - F) + F. The rate is at most (1 + rho)/2
// exactly if delta satisfies the printed condition.
TEST(Recursion, NoisyTheoremSolvesTheRecursion) {
  Random random(6, 0);
  for (int trial = 0; trial < 200; ++trial) {
    ProofConstants constants;
    constants.sigma_1 = 1;
    constants.sigma_k = uniform(random, 0.3, 1);
    constants.sigma_next = uniform(random, 0, 0.3) * constants.sigma_k;
    const double gap = constants.sigma_k - constants.sigma_next;
    const double rho = 2 * constants.sigma_next / (constants.sigma_k + constants.sigma_next);
    const double c = four_root_five / (constants.sigma_k + constants.sigma_next);
    const double b = 3 + c;
    const double printed_delta = rho > 0 ? std::min((1 - rho) / (4 * rho * c), rho / (2 * b)) : 0;
    constants.delta = uniform(random, 0, 2) * printed_delta;
    constants.noise = uniform(random, 0, 0.001) * gap;
    RecoveryPoint point;
    point.error_M = std::min(1.0, 0.5 * gap / (four_root_five * std::max(constants.delta, 1e-9)));
    TheoryPoint theory = bound_errors(constants, point);
    EXPECT_EQ(theory.rate <= (1 + rho) / 2, constants.delta <= printed_delta);
    double bound = theory.index_weight * point.error();
    for (int t = 0; t < 30 && theory.rate < 1; ++t) {
      theory = bound_errors(constants, point);
      if (!theory.is_applicable) break;
      bound = theory.rate * (bound - theory.index_floor) + theory.index_floor;
      point.tan_theta = theory.alpha_bound;
      point.error_w = theory.beta_bound;
      point.error_M = theory.gamma_bound;
      EXPECT_LE(point.tan_theta + theory.index_weight * point.error(), bound * (1 + 1e-9));
    }
  }
}

// The printed condition delta <= rho / (2b) allows only delta = 0 if M* has rank k. The rate of bound_errors() is below
// 1 for b delta < 1/2.
TEST(Recursion, NoisyTheoremCoversNoiseWithoutResidualSpectrum) {
  RecoveryPoint before;
  before.error_M = 0.1;
  const TheoryPoint theory = bound_errors({1, 1, 0, 0.01, 0.001}, before);
  EXPECT_TRUE(theory.is_applicable);
  EXPECT_FALSE(theory.is_vacuous());
  EXPECT_NEAR(theory.rate, 0.5 + (3 + four_root_five) * 0.01, 1e-12);
}

// The initial index is at most 4 (delta eps_0 + r) / gap + 2 c delta eps_0. The printed condition has r instead of 2r
// and allows an index of 4; the theorem assumes at most 2.
TEST(Recursion, NoisyTheoremRequiresTwiceTheNoiseTermAtTheStart) {
  constexpr double gap = 0.8;
  const auto initial_index = [&](double r) { return 4 * r / gap; };  // delta = 0
  EXPECT_GT(initial_index(gap), 2);                                  // printed: r <= gap
  EXPECT_LE(initial_index(gap / 2), 2);                              // corrected: 2r <= gap
}

}  // namespace
}  // namespace dyad::recursion_test
