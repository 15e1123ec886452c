#include "solvers/gauss_newton/levenberg_marquardt.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// Sets collapsed factors to 0, because a ridge shrinks them to 0 only in the limit. Factors of the same sign are first
/// rotated to orthogonal columns, which does not change M.
SignedFactors<double> zero_collapsed_factors(SignedFactors<double> parameters) {
  // Relative to the largest squared norm of a factor. Sensitivity: docs/constants.md.
  constexpr double collapse_threshold = 1e-5;
  const Index rank = parameters.signs.size();
  for (const double sign : {1, -1}) {
    std::vector<Index> columns;
    for (Index c = 0; c < rank; ++c)
      if (parameters.signs[c] == sign) columns.push_back(c);
    if (columns.empty()) continue;
    RowMajorMatrix<double> factors(parameters.A.rows(), static_cast<Index>(columns.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) factors.col(static_cast<Index>(i)) = parameters.A.col(columns[i]);
    const Matrix<double> gram = factors.transpose() * factors;
    factors *= symmetric_eigen(gram).vectors;
    for (std::size_t i = 0; i < columns.size(); ++i) parameters.A.col(columns[i]) = factors.col(static_cast<Index>(i));
  }
  const Vector<double> squared_norms = parameters.A.colwise().squaredNorm();
  for (Index c = 0; c < rank; ++c)
    if (squared_norms[c] <= collapse_threshold * squared_norms.maxCoeff()) parameters.A.col(c).setZero();
  return parameters;
}

/// Preconditioned conjugate gradients for H t = b from t = 0 (Nocedal and Wright 2006, algorithm 5.3). Returns t and
/// the residual b - H t. Ends when the squared norm of the residual, in the metric of the preconditioner, has decreased
/// to `tolerance` times that of b, when `can_continue` returns false, or when `has_positive_curvature(d'Hd, d)` returns
/// false for a search direction d.
template <typename CanContinue, typename Multiply, typename HasPositiveCurvature>
std::pair<ParameterVector, ParameterVector> conjugate_gradients(const ParameterVector& b, double tolerance,
                                                                const Preconditioner& preconditioner,
                                                                CanContinue&& can_continue, Multiply&& multiply,
                                                                HasPositiveCurvature&& has_positive_curvature) {
  ParameterVector residual = b;
  ParameterVector t = residual;
  t.add(-1, residual);
  ParameterVector z = preconditioner.solve(residual);
  ParameterVector direction = z;
  double rz = residual.dot(z);
  const double target = rz * tolerance;
  while (rz > target && rz > 0 && can_continue()) {
    const ParameterVector Hd = multiply(direction);
    const double curvature = direction.dot(Hd);
    if (!has_positive_curvature(curvature, direction)) break;
    const double step = rz / curvature;
    t.add(step, direction);
    residual.add(-step, Hd);
    z = preconditioner.solve(residual);
    const double next = residual.dot(z);
    direction.scale_and_add(next / rz, z);
    rz = next;
  }
  return {std::move(t), std::move(residual)};
}

}  // namespace

LevenbergMarquardt::LevenbergMarquardt(const std::shared_ptr<const NormalEquations>& equations,
                                       const NewtonOptions& options)
    : options_(options),
      epsilon_(equations->epsilon()),
      data_objective_(equations, options),
      preconditioner_(*equations, options) {}

void LevenbergMarquardt::start(SignedFactors<double> parameters) {
  parameters_ = std::move(parameters);
  loss_ = data_objective_.evaluate_at(parameters_);
  objective_ = loss_ + ridge_penalty(parameters_);
  is_data_objective_stale_ = false;
  // Relative to the diagonal of the Gauss-Newton matrix. Sensitivity: docs/constants.md.
  constexpr double initial_damping = 1e-2;
  damping_ = initial_damping;
  stalled_steps_ = 0;
}

bool LevenbergMarquardt::is_exact() const {
  // Rows with a larger epsilon are floats (epsilon 1e-7), the others doubles (epsilon 2e-16).
  constexpr double max_double_epsilon = 1e-10;
  // Maximum ratio of the mean squared residual to that of the best constant, between those of fits without and with
  // noise: relative residuals of 3e-5 for rows of floats and of 1e-7 for rows of doubles.
  const double max_exact_ratio = epsilon_ > max_double_epsilon ? 1e-9 : 1e-14;
  return options_.likelihood->has_noise_variance() && loss_ <= max_exact_ratio * data_objective_.constant_loss();
}

double LevenbergMarquardt::ridge_penalty(const SignedFactors<double>& parameters) const {
  const auto squares = [](const auto& values) { return values.squaredNorm(); };
  return (options_.ridge.weights * (squares(parameters.weights) + squares(parameters.squares)) +
          options_.ridge.factors * squares(parameters.A)) /
         (2 * data_objective_.total_weight());
}

void LevenbergMarquardt::add_ridge(double scale, const Vector<double>& weights, const RowMajorMatrix<double>& factors,
                                   const Vector<double>& squares, ParameterVector& to) const {
  const double scaled_weight_ridge = scale * options_.ridge.weights;
  if (options_.shape.linear) to.features.col(0) += scaled_weight_ridge * weights;
  to.features.rightCols(options_.shape.rank) += scale * options_.ridge.factors * factors;
  if (to.squares.size() > 0) to.squares += scaled_weight_ridge * squares;
}

ParameterVector LevenbergMarquardt::negative_gradient() const {
  ParameterVector gradient = data_objective_.negative_gradient();
  add_ridge(-1, parameters_.weights, parameters_.A, parameters_.squares, gradient);
  return gradient;
}

ParameterVector LevenbergMarquardt::solve_dual() {
  const ParameterVector gradient = negative_gradient();
  ParameterVector ones = gradient;
  ones.intercept = 1;
  ones.features.setOnes();
  ones.squares.setOnes();
  ParameterVector diagonal = preconditioner_.apply_damping(ones);
  add_ridge(1, ones.features.col(0), ones.features.rightCols(options_.shape.rank), ones.squares, diagonal);
  ParameterVector offset = gradient;
  offset.add(-1, gradient);
  add_ridge(1, parameters_.weights, parameters_.A, parameters_.squares, offset);
  ParameterVector t = data_objective_.solve_dual(diagonal, offset);
  predicted_decrease_ =
      (gradient.dot(t) + preconditioner_.apply_damping(t).dot(t)) / (2 * data_objective_.total_weight());
  return t;
}

ParameterVector LevenbergMarquardt::solve(double tolerance) {
  if (data_objective_.prefers_dual()) return solve_dual();
  const ParameterVector gradient = negative_gradient();
  // Maximum number of conjugate gradient iterations of a step. Sensitivity: docs/constants.md.
  constexpr int max_exact_iterations = 2000;
  constexpr int max_iterations = 200;  // sensitivity: docs/constants.md
  int remaining = options_.exact_steps ? max_exact_iterations : max_iterations;
  const auto can_continue = [&] { return remaining-- > 0 && passes() < options_.max_passes && !is_interrupted(); };
  const auto multiply_damped = [&](const ParameterVector& direction) {
    ParameterVector Hd = data_objective_.curvature_product(direction);
    Hd.add(1, preconditioner_.apply_damping(direction));
    add_ridge(1, direction.features.col(0), direction.features.rightCols(options_.shape.rank), direction.squares, Hd);
    return Hd;
  };
  const auto has_positive_curvature = [](double curvature, const ParameterVector&) { return curvature > 0; };
  const auto [t, residual] = conjugate_gradients(gradient, tolerance * tolerance, preconditioner_, can_continue,
                                                 multiply_damped, has_positive_curvature);
  // gradient't - t'(H + ridge)t / 2, where t solves the damped equations up to `residual`.
  predicted_decrease_ = (gradient.dot(t) + residual.dot(t) + preconditioner_.apply_damping(t).dot(t)) /
                        (2 * data_objective_.total_weight());
  return t;
}

bool LevenbergMarquardt::step() {
  // Of the objective; smaller decreases count as stalled steps. Sensitivity: docs/constants.md.
  constexpr double min_relative_decrease = 1e-3;
  // A smaller decrease ends the fit. Sensitivity: docs/constants.md.
  constexpr double converged_relative_decrease = 1e-7;
  constexpr double max_damping = 1e6;  // the fit ends at a larger damping, whose steps are negligibly short
  // A fit ends if its relative residuals are at most 10 epsilon, which are rounding errors. The factor applies to
  // squares. Sensitivity: docs/constants.md.
  constexpr double squared_rounding_factor = 1e2;
  // Relative tolerance of the linear equations. Inexact steps use the relative residual, up to `max_tolerance`, because
  // such a tolerance preserves quadratic convergence (Dembo, Eisenstat and Steihaug 1982). Sensitivity:
  // docs/constants.md.
  constexpr double exact_tolerance = 1e-12;
  constexpr double max_tolerance = 0.1;   // sensitivity: docs/constants.md
  constexpr double min_tolerance = 1e-6;  // the last step of an exact fit reduces residuals of 1e-7 to rounding
  // Update of the damping by the ratio of actual to predicted decrease (Nocedal and Wright 2006, algorithm 4.1).
  constexpr double good_decrease_ratio = 0.75;
  constexpr double poor_decrease_ratio = 0.25;
  constexpr double damping_decrease = 5;  // sensitivity: docs/constants.md
  constexpr double damping_increase = 4;
  constexpr double min_damping = 1e-12;  // sensitivity: docs/constants.md
  const bool has_ridge = options_.ridge.weights > 0 || options_.ridge.factors > 0;
  const bool is_at_rounding =
      !has_ridge && loss_ <= squared_rounding_factor * epsilon_ * epsilon_ * data_objective_.constant_loss();
  if (is_at_rounding || stalled_steps_ >= options_.patience || damping_ > max_damping || !std::isfinite(objective_) ||
      passes() >= options_.max_passes)
    return false;
  ++steps_;
  if (is_data_objective_stale_) {
    data_objective_.evaluate_at(parameters_);
    is_data_objective_stale_ = false;
  }
  preconditioner_.update(data_objective_, parameters_);
  preconditioner_.set_damping(damping_);
  const ParameterVector t = solve(options_.exact_steps ? exact_tolerance
                                                       : std::clamp(std::sqrt(loss_ / data_objective_.constant_loss()),
                                                                    min_tolerance, max_tolerance));
  if (is_interrupted()) return false;  // t is incomplete
  SignedFactors<double> next = apply_step(parameters_, t);
  const double loss = data_objective_.evaluate_at(next);
  is_data_objective_stale_ = true;
  const double objective = loss + ridge_penalty(next);
  const bool is_decrease = objective < objective_;  // false for NaN
  const double decrease_ratio =
      is_decrease ? (objective_ - objective) / std::max(predicted_decrease_, std::numeric_limits<double>::min()) : 0;
  if (is_decrease) {
    stalled_steps_ = objective > (1 - min_relative_decrease) * objective_ ? stalled_steps_ + 1 : 0;
    if (objective > (1 - converged_relative_decrease) * objective_) stalled_steps_ = options_.patience;
    parameters_ = std::move(next);
    loss_ = loss;
    objective_ = objective;
    is_data_objective_stale_ = false;
  }
  if (decrease_ratio > good_decrease_ratio)
    damping_ = std::max(damping_ / damping_decrease, min_damping);
  else if (decrease_ratio < poor_decrease_ratio)
    damping_ *= damping_increase;
  return true;
}

void LevenbergMarquardt::run() {
  constexpr int max_steps = 60;  // fits from a good start converge in about 10 steps; sensitivity: docs/constants.md
  for (int i = 0; i < max_steps && !is_interrupted() && step();) ++i;
}

ParameterVector LevenbergMarquardt::negative_gradient_at(SignedFactors<double> parameters) {
  parameters_ = std::move(parameters);
  loss_ = data_objective_.evaluate_at(parameters_);
  return negative_gradient();
}

/// Conjugate gradients. The products H d are central differences of gradients.
ParameterVector LevenbergMarquardt::newton_step(const ParameterVector& gradient, double damping, Index last_pass) {
  const SignedFactors<double> center = parameters_;
  const double size = std::sqrt(center.weights.squaredNorm() + center.A.squaredNorm() + 1);
  preconditioner_.update(data_objective_, center);
  // Negligible, because `damping` is added to H itself. Sensitivity: docs/constants.md.
  constexpr double preconditioner_damping = 1e-9;
  preconditioner_.set_damping(preconditioner_damping);
  // Relative distance of the central differences, near the cube root of the rounding error of doubles. Sensitivity:
  // docs/constants.md.
  constexpr double relative_difference_step = 1e-5;
  const auto multiply_hessian = [&](const ParameterVector& direction) {
    const double difference_step = relative_difference_step * size / std::sqrt(direction.dot(direction));
    const auto at_distance = [&](double distance) {
      ParameterVector scaled = direction;
      scaled.scale_and_add(distance - 1, direction);
      return apply_step(center, scaled);
    };
    ParameterVector Hd = negative_gradient_at(at_distance(-difference_step));
    Hd.add(-1, negative_gradient_at(at_distance(difference_step)));
    Hd.scale_and_add(1 / (2 * difference_step) - 1, Hd);
    Hd.add(damping * total_weight(), direction);
    return Hd;
  };
  // H is singular along rotations of factors of one sign. Differences of gradients are rounding errors there.
  double largest_curvature = 0;
  const auto has_positive_curvature = [&](double curvature, const ParameterVector& direction) {
    // Relative to the largest curvature of a search direction. Sensitivity: docs/constants.md.
    constexpr double min_relative_curvature = 1e-7;
    const double relative = curvature / direction.dot(direction);
    largest_curvature = std::max(largest_curvature, relative);
    return relative > min_relative_curvature * largest_curvature;
  };
  // Ratio of squared norms of the residual and the gradient. Sensitivity: docs/constants.md.
  constexpr double tolerance = 1e-14;
  const auto can_continue = [&] { return passes() < last_pass && !is_interrupted(); };
  ParameterVector t =
      conjugate_gradients(gradient, tolerance, preconditioner_, can_continue, multiply_hessian, has_positive_curvature)
          .first;
  parameters_ = center;
  return t;
}

void LevenbergMarquardt::polish(Index max_passes) {
  const Index last_pass = passes() + max_passes;
  const auto can_continue = [&] { return passes() < last_pass && !is_interrupted(); };
  const auto descend = [&] {
    constexpr double min_relative_decrease = 1e-9;  // of the objective by one round; sensitivity: docs/constants.md
    constexpr int max_rounds = 6;                   // sensitivity: docs/constants.md
    constexpr int steps_per_round = 5;              // includes steps that only change the damping
    double before = std::numeric_limits<double>::infinity();
    for (int round = 0; round < max_rounds && objective_ < (1 - min_relative_decrease) * before && can_continue();
         ++round) {
      before = objective_;
      for (int i = 0; i < steps_per_round; ++i) {
        stalled_steps_ = 0;
        if (!step()) break;
      }
    }
  };
  descend();
  if (options_.ridge.factors > 0) {
    start(zero_collapsed_factors(parameters_));
    descend();
  }
  // Near the minimum the objective is constant up to rounding, but the gradient is not. Therefore, a step is also
  // accepted if it decreases the gradient. The damping is relative to the total weight. Sensitivity: docs/constants.md.
  constexpr double min_damping = 1e-8;
  constexpr double max_damping = 1e2;    // sensitivity: docs/constants.md
  constexpr double damping_factor = 10;  // sensitivity: docs/constants.md
  double damping = 0;
  ParameterVector gradient = negative_gradient_at(parameters_);
  double squared_gradient = gradient.dot(gradient);
  objective_ = loss_ + ridge_penalty(parameters_);
  constexpr double rounding = 1e-13;  // relative rounding error of sums over the rows; sensitivity: docs/constants.md
  const double squared_rounding = std::pow(rounding * total_weight(), 2);
  while (squared_gradient > squared_rounding && damping < max_damping && can_continue()) {
    const SignedFactors<double> before = parameters_;
    const ParameterVector next = negative_gradient_at(apply_step(before, newton_step(gradient, damping, last_pass)));
    const double next_squared_gradient = next.dot(next);
    const double objective = loss_ + ridge_penalty(parameters_);
    if (next_squared_gradient < squared_gradient || objective < (1 - rounding) * objective_) {
      gradient = next;
      squared_gradient = next_squared_gradient;
      objective_ = objective;
      damping = damping > min_damping ? damping / damping_factor : 0;
      continue;
    }
    parameters_ = before;
    damping = std::max(damping_factor * damping, min_damping);
  }
  (void)negative_gradient_at(parameters_);
  objective_ = loss_ + ridge_penalty(parameters_);
  is_data_objective_stale_ = false;
}

}  // namespace dyad
