#include "newton/phase_start.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Cholesky>

#include "base/random.h"
#include "rows/products.h"

namespace dyad {
namespace {

constexpr int power_steps = 60;

/// All X z, as a space to project on. X are the rows, each times the root of its weight.
template <typename Scalar>
class RowSpace {
 public:
  explicit RowSpace(const Rows<Scalar>& rows) : rows_(rows), roots_(rows.count()) {
    for (Index i = 0; i < rows.count(); ++i) roots_[i] = std::sqrt(rows.weight(i));
    Small<Scalar> gram = Small<Scalar>::Zero(rows.dim(), rows.dim());
    constexpr Index most = 256;
    Tall<Scalar> X(most, rows.dim());
    for (Index first = 0; first < rows.count(); first += most) {
      const Index count = std::min(most, rows.count() - first);
      X.setZero();
      for (Index i = 0; i < count; ++i)
        rows.for_each_entry(first + i, [&](Index j, Scalar x) { X(i, j) = roots_[first + i] * x; });
      gram.noalias() += X.transpose() * X;
    }
    const Scalar least = std::numeric_limits<Scalar>::epsilon() * gram.diagonal().maxCoeff();
    gram.diagonal().array() += std::max(least, std::numeric_limits<Scalar>::min());
    gram_.compute(gram);
  }

  [[nodiscard]] Vector<Scalar> times(const Vector<Scalar>& z) const {
    Vector<Scalar> u(rows_.count());
    project(rows_, z.data(), 1, u.data());
    return u.cwiseProduct(roots_);
  }
  [[nodiscard]] Vector<Scalar> transposed_times(const Vector<Scalar>& u) const {
    Vector<Scalar> z = Vector<Scalar>::Zero(rows_.dim());
    const Vector<Scalar> weighted = u.cwiseProduct(roots_);
    add_back_projection(rows_, weighted.data(), 1, z.data());
    return z;
  }
  /// The z whose X z is nearest to u.
  [[nodiscard]] Vector<Scalar> nearest(const Vector<Scalar>& u) const { return gram_.solve(transposed_times(u)); }
  [[nodiscard]] const Vector<Scalar>& roots() const { return roots_; }

 private:
  Rows<Scalar> rows_;
  Vector<Scalar> roots_;
  Eigen::LLT<Small<Scalar>> gram_;
};

/// The direction of the rows with the largest targets.
template <typename Scalar>
Vector<Scalar> spectral_direction(const RowSpace<Scalar>& space, const Vector<Scalar>& amplitudes, Index dim,
                                  std::uint64_t seed) {
  constexpr double share = 0.25;
  std::vector<Scalar> sorted(amplitudes.begin(), amplitudes.end());
  const auto place = static_cast<std::ptrdiff_t>((1 - share) * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
  const Scalar large = sorted[static_cast<std::size_t>(place)];
  const Vector<Scalar> weights = amplitudes.unaryExpr([&](Scalar a) { return a >= large ? std::sqrt(a) : Scalar(0); });
  Random random(seed, start_stream);
  Vector<Scalar> z = random_normal<Scalar>(random, dim, 1);
  for (int step = 0; step < power_steps; ++step) {
    z = space.transposed_times(weights.cwiseProduct(space.times(z)));
    z /= std::max(z.norm(), std::numeric_limits<Scalar>::min());
  }
  return z;
}

}  // namespace

bool can_search_phases(Index dim) {
  constexpr Index most = 3000;
  return dim <= most;
}

template <typename Scalar>
PhaseStart<Scalar> phase_start(const Rows<Scalar>& rows, const NewtonOptions& options) {
  constexpr int most_reflections = 4000;
  constexpr auto relaxation = Scalar(0.6);
  const RowSpace<Scalar> space(rows);
  Vector<Scalar> amplitudes = space.roots();
  for (Index i = 0; i < rows.count(); ++i)
    amplitudes[i] *= std::sqrt(std::max(Scalar(0), rows.targets()[static_cast<std::size_t>(i)]));
  const auto with_signs_of = [&](const Vector<Scalar>& u) {
    return Vector<Scalar>(amplitudes.binaryExpr(u, [](Scalar a, Scalar s) { return s < 0 ? -a : a; }));
  };

  Vector<Scalar> best = spectral_direction(space, amplitudes, rows.dim(), options.seed);
  best *= amplitudes.norm() / std::max(space.times(best).norm(), std::numeric_limits<Scalar>::min());
  Vector<Scalar> u = space.times(best);
  Scalar least = std::numeric_limits<Scalar>::max();
  Index looks = 2 * power_steps + 1;
  const Scalar enough = Scalar(10) * std::sqrt(std::numeric_limits<Scalar>::epsilon()) * amplitudes.norm();
  for (int i = 0; i < most_reflections && !(options.interrupted && options.interrupted()); ++i) {
    const Vector<Scalar> on_amplitudes = with_signs_of(u);
    const Vector<Scalar> z = space.nearest(2 * on_amplitudes - u);
    const Vector<Scalar> gap = space.times(z) - on_amplitudes;
    looks += 2;
    if (const Scalar distance = gap.norm(); distance < least) {
      least = distance;
      best = z;
    }
    if (least <= enough) break;
    u += relaxation * gap;
  }

  SignedFactors<Scalar> start;
  start.diagonal = options.shape.diagonal;
  start.weights = Vector<Scalar>::Zero(rows.dim());
  start.A = best;
  start.signs = Vector<Scalar>::Ones(1);
  return {std::move(start), looks};
}

template PhaseStart<float> phase_start(const Rows<float>&, const NewtonOptions&);
template PhaseStart<double> phase_start(const Rows<double>&, const NewtonOptions&);

}  // namespace dyad
