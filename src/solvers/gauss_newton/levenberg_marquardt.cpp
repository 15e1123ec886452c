#include "solvers/gauss_newton/levenberg_marquardt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// Sets factors to 0 that a ridge shrinks towards 0, which takes iterations many steps. Factors of one sign can be
/// rotated into each other without changing the model, so that they are first rotated to orthogonal columns.
SignedFactors<double> without_vanishing_factors(SignedFactors<double> parameters) {
  constexpr double vanishing = 1e-5;  // relative to the largest squared norm
  const Index rank = parameters.signs.size();
  for (const double sign : {1, -1}) {
    std::vector<Index> own;
    for (Index c = 0; c < rank; ++c)
      if (parameters.signs[c] == sign) own.push_back(c);
    if (own.empty()) continue;
    Tall<double> factors(parameters.A.rows(), static_cast<Index>(own.size()));
    for (std::size_t i = 0; i < own.size(); ++i) factors.col(static_cast<Index>(i)) = parameters.A.col(own[i]);
    const Small<double> products = factors.transpose() * factors;
    factors *= symmetric_eigen(products).vectors;
    for (std::size_t i = 0; i < own.size(); ++i) parameters.A.col(own[i]) = factors.col(static_cast<Index>(i));
  }
  const Vector<double> lengths = parameters.A.colwise().squaredNorm();
  for (Index c = 0; c < rank; ++c)
    if (lengths[c] <= vanishing * lengths.maxCoeff()) parameters.A.col(c).setZero();
  return parameters;
}

/// Preconditioned conjugate gradients for H t = b from t = 0: t and the residual b - H t. Ends when the squared norm of
/// the residual has decreased to `tolerance` times that of b, when `goes_on` returns false, or when
/// `is_curved(d'Hd, d)` returns false for a search direction d.
template <typename GoesOn, typename Times, typename IsCurved>
std::pair<ParameterVector, ParameterVector> conjugate_gradients(const ParameterVector& b, double tolerance,
                                                                const Preconditioner& preconditioner, GoesOn&& goes_on,
                                                                Times&& H_times, IsCurved&& is_curved) {
  ParameterVector rest = b;
  ParameterVector t = rest;
  t.add(-1, rest);
  ParameterVector z = preconditioner.solved(rest);
  ParameterVector direction = z;
  double rz = rest.dot(z);
  const double enough = rz * tolerance;
  while (rz > enough && rz > 0 && goes_on()) {
    const ParameterVector Hd = H_times(direction);
    const double curvature = direction.dot(Hd);
    if (!is_curved(curvature, direction)) break;
    const double step = rz / curvature;
    t.add(step, direction);
    rest.add(-step, Hd);
    z = preconditioner.solved(rest);
    const double next = rest.dot(z);
    direction.scale_and_add(next / rz, z);
    rz = next;
  }
  return {std::move(t), std::move(rest)};
}

}  // namespace

LevenbergMarquardt::LevenbergMarquardt(const std::shared_ptr<const NormalEquations>& equations,
                                       const NewtonOptions& options)
    : options_(options),
      epsilon_(equations->epsilon()),
      rows_(equations, options),
      preconditioner_(*equations, options) {}

void LevenbergMarquardt::start(SignedFactors<double> parameters) {
  parameters_ = std::move(parameters);
  loss_ = rows_.move_to(parameters_);
  objective_ = loss_ + ridge_of(parameters_);
  has_moved_ = false;
  damping_ = 1e-2;
  stalled_ = 0;
}

bool LevenbergMarquardt::is_exact() const {
  // Ratio of squared residuals, in between those of fits without and with noise.
  const double exact_ratio = epsilon_ > 1e-10 ? 1e-9 : 1e-14;
  return options_.likelihood->has_noise_variance() && loss_ <= exact_ratio * rows_.constant_loss();
}

double LevenbergMarquardt::ridge_of(const SignedFactors<double>& parameters) const {
  const auto squares = [](const auto& numbers) { return numbers.squaredNorm(); };
  return (options_.ridge.weights * (squares(parameters.weights) + squares(parameters.squares)) +
          options_.ridge.factors * squares(parameters.A)) /
         (2 * rows_.total_weight());
}

void LevenbergMarquardt::add_ridge(double scale, const Vector<double>& weights, const Tall<double>& factors,
                                   const Vector<double>& squares, ParameterVector& to) const {
  const double of_weights = scale * options_.ridge.weights;
  if (options_.shape.linear) to.features.col(0) += of_weights * weights;
  to.features.rightCols(options_.shape.rank) += scale * options_.ridge.factors * factors;
  if (to.squares.size() > 0) to.squares += of_weights * squares;
}

ParameterVector LevenbergMarquardt::negative_gradient() const {
  ParameterVector gradient = rows_.negative_gradient();
  add_ridge(-1, parameters_.weights, parameters_.A, parameters_.squares, gradient);
  return gradient;
}

/// The equations of `solve` in their dual form, one per row.
ParameterVector LevenbergMarquardt::solve_dual() {
  const ParameterVector gradient = negative_gradient();
  ParameterVector ones = gradient;
  ones.intercept = 1;
  ones.features.setOnes();
  ones.squares.setOnes();
  ParameterVector diagonal = preconditioner_.damped(ones);
  add_ridge(1, ones.features.col(0), ones.features.rightCols(options_.shape.rank), ones.squares, diagonal);
  ParameterVector offset = gradient;
  offset.add(-1, gradient);
  add_ridge(1, parameters_.weights, parameters_.A, parameters_.squares, offset);
  ParameterVector t = rows_.solve_dual(diagonal, offset);
  predicted_gain_ = (gradient.dot(t) + preconditioner_.damped(t).dot(t)) / (2 * rows_.total_weight());
  return t;
}

/// t of (J'HJ + ridge + damping D) t = J'r - ridge theta, up to a relative residual of `tolerance`.
ParameterVector LevenbergMarquardt::solve(double tolerance) {
  if (rows_.prefers_dual()) return solve_dual();
  const ParameterVector gradient = negative_gradient();
  int left = options_.exact_steps ? 2000 : 200;
  const auto goes_on = [&] { return left-- > 0 && products() < options_.most_products && !is_interrupted(); };
  const auto times = [&](const ParameterVector& direction) {
    ParameterVector Hd = rows_.curvature_times(direction);
    Hd.add(1, preconditioner_.damped(direction));
    add_ridge(1, direction.features.col(0), direction.features.rightCols(options_.shape.rank), direction.squares, Hd);
    return Hd;
  };
  const auto is_curved = [](double curvature, const ParameterVector&) { return curvature > 0; };
  const auto [t, rest] =
      conjugate_gradients(gradient, tolerance * tolerance, preconditioner_, goes_on, times, is_curved);
  // gradient't - t'(H + ridge)t / 2, where t solves the damped equations up to `rest`.
  predicted_gain_ = (gradient.dot(t) + rest.dot(t) + preconditioner_.damped(t).dot(t)) / (2 * rows_.total_weight());
  return t;
}

bool LevenbergMarquardt::step() {
  constexpr double least_progress = 1e-3;
  constexpr double no_progress = 1e-7;
  constexpr double most_damping = 1e6;
  const bool has_ridge = options_.ridge.weights > 0 || options_.ridge.factors > 0;
  const bool is_done = !has_ridge && loss_ <= 1e2 * epsilon_ * epsilon_ * rows_.constant_loss();
  if (is_done || stalled_ >= options_.patience || damping_ > most_damping || !std::isfinite(objective_) ||
      products() >= options_.most_products)
    return false;
  ++steps_;
  if (has_moved_) {
    rows_.move_to(parameters_);
    has_moved_ = false;
  }
  preconditioner_.move_to(rows_, parameters_);
  preconditioner_.set_damping(damping_);
  const ParameterVector t =
      solve(options_.exact_steps ? 1e-12 : std::min(0.1, std::sqrt(loss_ / rows_.constant_loss())));
  if (is_interrupted()) return false;  // t is incomplete
  SignedFactors<double> next = moved(parameters_, t);
  const double loss = rows_.move_to(next);
  has_moved_ = true;
  const double objective = loss + ridge_of(next);
  const bool better = objective < objective_;  // false for NaN
  const double gain =
      better ? (objective_ - objective) / std::max(predicted_gain_, std::numeric_limits<double>::min()) : 0;
  if (better) {
    stalled_ = objective > (1 - least_progress) * objective_ ? stalled_ + 1 : 0;
    if (objective > (1 - no_progress) * objective_) stalled_ = options_.patience;
    parameters_ = std::move(next);
    loss_ = loss;
    objective_ = objective;
    has_moved_ = false;
  }
  if (gain > 0.75)
    damping_ = std::max(damping_ / 5, 1e-12);
  else if (gain < 0.25)
    damping_ *= 4;
  return true;
}

void LevenbergMarquardt::run() {
  constexpr int most_steps = 60;
  for (int i = 0; i < most_steps && !is_interrupted() && step();) ++i;
}

/// Moves to other parameters without a test of the objective.
ParameterVector LevenbergMarquardt::negative_gradient_at(SignedFactors<double> parameters) {
  parameters_ = std::move(parameters);
  loss_ = rows_.move_to(parameters_);
  return negative_gradient();
}

/// t of (H + damping) t = gradient by conjugate gradients with the full Hessian H, whose products are central
/// differences of gradients.
ParameterVector LevenbergMarquardt::newton_step(const ParameterVector& gradient, double damping, Index last_product) {
  const SignedFactors<double> here = parameters_;
  const double size = std::sqrt(here.weights.squaredNorm() + here.A.squaredNorm() + 1);
  preconditioner_.move_to(rows_, here);
  preconditioner_.set_damping(1e-9);
  const auto times = [&](const ParameterVector& direction) {
    const double apart = 1e-5 * size / std::sqrt(direction.dot(direction));
    const auto moved_by = [&](double step) {
      ParameterVector by = direction;
      by.scale_and_add(step - 1, direction);
      return moved(here, by);
    };
    ParameterVector Hd = negative_gradient_at(moved_by(-apart));
    Hd.add(-1, negative_gradient_at(moved_by(apart)));
    Hd.scale_and_add(1 / (2 * apart) - 1, Hd);
    Hd.add(damping * total_weight(), direction);
    return Hd;
  };
  // H is singular along rotations of factors of one sign, where differences contain only rounding errors.
  double largest_curvature = 0;
  const auto is_curved = [&](double curvature, const ParameterVector& direction) {
    constexpr double flat = 1e-7;
    const double relative = curvature / direction.dot(direction);
    largest_curvature = std::max(largest_curvature, relative);
    return relative > flat * largest_curvature;
  };
  constexpr double enough = 1e-14;  // ratio of squared norms
  const auto goes_on = [&] { return products() < last_product && !is_interrupted(); };
  ParameterVector t = conjugate_gradients(gradient, enough, preconditioner_, goes_on, times, is_curved).first;
  parameters_ = here;
  return t;
}

void LevenbergMarquardt::polish(Index max_products) {
  const Index last_product = products() + max_products;
  const auto goes_on = [&] { return products() < last_product && !is_interrupted(); };
  const auto descend = [&] {
    constexpr double hardly = 1e-9;
    constexpr int rounds = 6;
    constexpr int steps_of_round = 5;  // includes steps that only change the damping
    double before = std::numeric_limits<double>::infinity();
    for (int round = 0; round < rounds && objective_ < (1 - hardly) * before && goes_on(); ++round) {
      before = objective_;
      for (int i = 0; i < steps_of_round; ++i) {
        stalled_ = 0;
        if (!step()) break;
      }
    }
  };
  descend();
  if (options_.ridge.factors > 0) {
    start(without_vanishing_factors(parameters_));
    descend();
  }
  // Near the minimum the loss is constant up to rounding, but the gradient still determines the parameters.
  constexpr double least_damping = 1e-8;
  constexpr double most_damping = 1e2;
  double damping = 0;
  ParameterVector rest = negative_gradient_at(parameters_);
  double squared_gradient = rest.dot(rest);
  objective_ = loss_ + ridge_of(parameters_);
  constexpr double rounding = 1e-13;
  const double flat = std::pow(rounding * total_weight(), 2);
  while (squared_gradient > flat && damping < most_damping && goes_on()) {
    const SignedFactors<double> before = parameters_;
    const ParameterVector next = negative_gradient_at(moved(before, newton_step(rest, damping, last_product)));
    const double now = next.dot(next);
    const double objective = loss_ + ridge_of(parameters_);
    if (now < squared_gradient || objective < (1 - rounding) * objective_) {
      rest = next;
      squared_gradient = now;
      objective_ = objective;
      damping = damping > least_damping ? damping / 10 : 0;
      continue;
    }
    parameters_ = before;
    damping = std::max(10 * damping, least_damping);
  }
  (void)negative_gradient_at(parameters_);
  objective_ = loss_ + ridge_of(parameters_);
  has_moved_ = false;
}

}  // namespace dyad
