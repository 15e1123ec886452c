#include "solvers/gauss_newton/phase_start.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>

#include "base/random.h"

namespace dyad {
namespace {

constexpr int power_steps = 60;

/// The column space of X, for orthogonal projections. X are the rows, each times the root of its weight.
class RowSpace {
 public:
  explicit RowSpace(const ObservedRows& rows) : rows_(rows), roots_(rows.weights().cwiseSqrt()) {
    Small<double> products = Small<double>::Zero(1 + rows.dim(), 1 + rows.dim());
    rows.X().add_gram(all_rows(), rows.weights().data(), products);
    Small<double> gram = products.bottomRightCorner(rows.dim(), rows.dim());
    const double least = std::numeric_limits<double>::epsilon() * gram.diagonal().maxCoeff();
    gram.diagonal().array() += std::max(least, std::numeric_limits<double>::min());
    gram_.compute(gram);
  }

  [[nodiscard]] Vector<double> times(const Vector<double>& z) const {
    Vector<double> u(rows_.count());
    rows_.X().multiply(all_rows(), all_columns(), z.data(), 1, u.data());
    return u.cwiseProduct(roots_);
  }
  [[nodiscard]] Vector<double> transposed_times(const Vector<double>& u) const {
    Vector<double> z = Vector<double>::Zero(rows_.dim());
    const Vector<double> weighted = u.cwiseProduct(roots_);
    rows_.X().add_transposed_product(all_rows(), all_columns(), weighted.data(), 1, z.data());
    return z;
  }
  /// argmin_z |X z - u|.
  [[nodiscard]] Vector<double> nearest(const Vector<double>& u) const { return gram_.solve(transposed_times(u)); }
  [[nodiscard]] const Vector<double>& roots() const { return roots_; }

 private:
  [[nodiscard]] Share all_rows() const { return {0, rows_.count()}; }
  [[nodiscard]] Share all_columns() const { return {0, rows_.dim()}; }

  ObservedRows rows_;
  Vector<double> roots_;
  Eigen::LLT<Small<double>> gram_;
};

/// Spectral initialization from the rows with the largest targets.
Vector<double> spectral_direction(const RowSpace& space, const Vector<double>& amplitudes, Index dim,
                                  std::uint64_t seed) {
  constexpr double share = 0.25;
  std::vector<double> sorted(amplitudes.begin(), amplitudes.end());
  const auto place = static_cast<std::ptrdiff_t>((1 - share) * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
  const double large = sorted[static_cast<std::size_t>(place)];
  const Vector<double> weights = amplitudes.unaryExpr([&](double a) { return a >= large ? std::sqrt(a) : 0.0; });
  Random random(seed, start_stream);
  Vector<double> z = random_normal<double>(random, dim, 1);
  for (int step = 0; step < power_steps; ++step) {
    z = space.transposed_times(weights.cwiseProduct(space.times(z)));
    z /= std::max(z.norm(), std::numeric_limits<double>::min());
  }
  return z;
}

}  // namespace

bool can_search_phases(Index dim) {
  constexpr Index most = 3000;
  return dim <= most;
}

PhaseStart phase_start(const ObservedRows& rows, const NewtonOptions& options) {
  constexpr int most_reflections = 4000;
  constexpr double relaxation = 0.6;
  const RowSpace space(rows);
  Vector<double> amplitudes = space.roots();
  for (Index i = 0; i < rows.count(); ++i) amplitudes[i] *= std::sqrt(std::max(0.0, rows.targets()[i]));
  const auto with_signs_of = [&](const Vector<double>& u) {
    return Vector<double>(amplitudes.binaryExpr(u, [](double a, double s) { return s < 0 ? -a : a; }));
  };

  Vector<double> best = spectral_direction(space, amplitudes, rows.dim(), options.seed);
  best *= amplitudes.norm() / std::max(space.times(best).norm(), std::numeric_limits<double>::min());
  Vector<double> u = space.times(best);
  double least = std::numeric_limits<double>::max();
  Index products = 2 * power_steps + 1;
  const double enough = 10 * std::sqrt(rows.X().epsilon()) * amplitudes.norm();
  for (int i = 0; i < most_reflections && !(options.interrupted && options.interrupted()); ++i) {
    const Vector<double> on_amplitudes = with_signs_of(u);
    const Vector<double> z = space.nearest(2 * on_amplitudes - u);
    const Vector<double> gap = space.times(z) - on_amplitudes;
    products += 2;
    if (const double distance = gap.norm(); distance < least) {
      least = distance;
      best = z;
    }
    if (least <= enough) break;
    u += relaxation * gap;
  }

  SignedFactors<double> start;
  start.diagonal = options.shape.diagonal;
  start.weights = Vector<double>::Zero(rows.dim());
  start.A = best;
  start.signs = Vector<double>::Ones(1);
  return {std::move(start), products};
}

}  // namespace dyad
