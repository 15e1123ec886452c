#include "solvers/gauss_newton/phase_start.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>

#include "base/random.h"

namespace dyad {
namespace {

// Number of power iterations of `compute_spectral_direction`. Sensitivity: docs/constants.md.
constexpr int power_iterations = 60;

/// Orthogonal projections on the column space of X. Row i of X is the observed row times the root of its weight.
class ColumnSpace {
 public:
  explicit ColumnSpace(const ObservedRows& rows) : rows_(rows), root_weights_(rows.weights().cwiseSqrt()) {
    Matrix<double> moments = Matrix<double>::Zero(1 + rows.dim(), 1 + rows.dim());
    rows.X().add_gram(all_rows(), rows.weights().data(), moments);
    Matrix<double> gram = moments.bottomRightCorner(rows.dim(), rows.dim());
    // Keeps the Cholesky decomposition of a singular matrix finite.
    const double jitter = std::numeric_limits<double>::epsilon() * gram.diagonal().maxCoeff();
    gram.diagonal().array() += std::max(jitter, std::numeric_limits<double>::min());
    gram_.compute(gram);
  }

  /// X z.
  [[nodiscard]] Vector<double> multiply(const Vector<double>& z) const {
    Vector<double> u(rows_.count());
    rows_.X().multiply(all_rows(), all_columns(), z.data(), 1, u.data());
    return u.cwiseProduct(root_weights_);
  }
  /// X'u.
  [[nodiscard]] Vector<double> multiply_transposed(const Vector<double>& u) const {
    Vector<double> z = Vector<double>::Zero(rows_.dim());
    const Vector<double> weighted = u.cwiseProduct(root_weights_);
    rows_.X().add_transposed_product(all_rows(), all_columns(), weighted.data(), 1, z.data());
    return z;
  }
  /// argmin_z |X z - u|.
  [[nodiscard]] Vector<double> solve_least_squares(const Vector<double>& u) const {
    return gram_.solve(multiply_transposed(u));
  }
  [[nodiscard]] const Vector<double>& root_weights() const { return root_weights_; }

 private:
  [[nodiscard]] IndexRange all_rows() const { return {0, rows_.count()}; }
  [[nodiscard]] IndexRange all_columns() const { return {0, rows_.dim()}; }

  ObservedRows rows_;
  Vector<double> root_weights_;
  Eigen::LLT<Matrix<double>> gram_;
};

/// Leading eigenvector of sum_i sqrt(a_i) x_i x_i' over the rows with the largest amplitudes a_i (weighted maximal
/// correlation initialization of reweighted amplitude flow, Wang et al. 2018).
Vector<double> compute_spectral_direction(const ColumnSpace& space, const Vector<double>& amplitudes, Index dim,
                                          std::uint64_t seed) {
  // Share of the rows in the sum; Wang et al. use 3/13. Sensitivity: docs/constants.md.
  constexpr double large_amplitude_share = 0.25;
  std::vector<double> sorted(amplitudes.begin(), amplitudes.end());
  const auto position =
      static_cast<std::ptrdiff_t>((1 - large_amplitude_share) * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + position, sorted.end());
  const double threshold = sorted[static_cast<std::size_t>(position)];
  const Vector<double> weights = amplitudes.unaryExpr([&](double a) { return a >= threshold ? std::sqrt(a) : 0.0; });
  Random random(seed, start_stream);
  Vector<double> z = random_normal<double>(random, dim, 1);
  for (int step = 0; step < power_iterations; ++step) {
    z = space.multiply_transposed(weights.cwiseProduct(space.multiply(z)));
    z /= std::max(z.norm(), std::numeric_limits<double>::min());
  }
  return z;
}

}  // namespace

bool can_compute_phase_start(Index dim) {
  constexpr Index max_dim = 3000;  // the Gram matrix takes 72 MB, and its decomposition dim^3 / 3 = 9e9
                                   // multiplications; sensitivity: docs/constants.md
  return dim <= max_dim;
}

PhaseStart compute_phase_start(const ObservedRows& rows, const NewtonOptions& options) {
  // The number of iterations to convergence is heavy-tailed: 350 to 150,000 for 1.5 dim rows, and fewer for more rows.
  // Sensitivity: docs/constants.md.
  constexpr int max_reflections = 4000;
  // Step length; convergence requires 0 < relaxation < 2. Sensitivity: docs/constants.md.
  constexpr double relaxation = 0.6;
  const ColumnSpace space(rows);
  Vector<double> amplitudes = space.root_weights();
  for (Index i = 0; i < rows.count(); ++i) amplitudes[i] *= std::sqrt(std::max(0.0, rows.targets()[i]));
  // Projection P_y u on the amplitudes.
  const auto with_signs_of = [&](const Vector<double>& u) {
    return Vector<double>(amplitudes.binaryExpr(u, [](double a, double s) { return s < 0 ? -a : a; }));
  };

  Vector<double> best = compute_spectral_direction(space, amplitudes, rows.dim(), options.seed);
  best *= amplitudes.norm() / std::max(space.multiply(best).norm(), std::numeric_limits<double>::min());
  Vector<double> u = space.multiply(best);
  double min_distance = std::numeric_limits<double>::max();
  Index passes = 2 * power_iterations + 1;
  // Gauss-Newton converges quadratically without noise, so that its first step reduces a relative distance of
  // 10 sqrt(epsilon) to about 100 epsilon.
  const double tolerance = 10 * std::sqrt(rows.X().epsilon()) * amplitudes.norm();
  for (int i = 0; i < max_reflections && !(options.interrupted && options.interrupted()); ++i) {
    const Vector<double> on_amplitudes = with_signs_of(u);
    const Vector<double> z = space.solve_least_squares(2 * on_amplitudes - u);
    const Vector<double> gap = space.multiply(z) - on_amplitudes;
    passes += 2;
    if (const double distance = gap.norm(); distance < min_distance) {
      min_distance = distance;
      best = z;
    }
    if (min_distance <= tolerance) break;
    u += relaxation * gap;
  }

  SignedFactors<double> start;
  start.diagonal = options.shape.diagonal;
  start.weights = Vector<double>::Zero(rows.dim());
  start.A = best;
  start.signs = Vector<double>::Ones(1);
  return {std::move(start), passes};
}

}  // namespace dyad
