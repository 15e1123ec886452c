#include "newton/descent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/decompositions.h"

namespace dyad {
namespace {

/// A ridge drives the factors that it does not need to 0, but ever more slowly; here they get there. Factors of one
/// sign may be turned into each other, so they are first turned into as few as possible.
template <typename Scalar>
SignedFactors<Scalar> without_vanishing_factors(SignedFactors<Scalar> parameters) {
  constexpr double vanishing = 1e-5;  // of the squared length of the longest
  const Index rank = parameters.signs.size();
  for (const Scalar sign : {Scalar(1), Scalar(-1)}) {
    std::vector<Index> own;
    for (Index c = 0; c < rank; ++c)
      if (parameters.signs[c] == sign) own.push_back(c);
    if (own.empty()) continue;
    Tall<Scalar> factors(parameters.A.rows(), static_cast<Index>(own.size()));
    for (std::size_t i = 0; i < own.size(); ++i) factors.col(static_cast<Index>(i)) = parameters.A.col(own[i]);
    const Small<Scalar> products = factors.transpose() * factors;
    factors *= symmetric_eigen(products).vectors;
    for (std::size_t i = 0; i < own.size(); ++i) parameters.A.col(own[i]) = factors.col(static_cast<Index>(i));
  }
  const Vector<Scalar> lengths = parameters.A.colwise().squaredNorm();
  for (Index c = 0; c < rank; ++c)
    if (lengths[c] <= static_cast<Scalar>(vanishing) * lengths.maxCoeff()) parameters.A.col(c).setZero();
  return parameters;
}

/// t and what is left of the slope, from t = 0: until that is so small a share in squares, or as long as `goes_on` says
/// so and H is bent along the way.
template <typename Scalar, typename GoesOn, typename Times, typename IsBent>
std::pair<Direction<Scalar>, Direction<Scalar>> conjugate_gradients(const Direction<Scalar>& slope, double share,
                                                                    const Preconditioner<Scalar>& preconditioner,
                                                                    GoesOn&& goes_on, Times&& H_times,
                                                                    IsBent&& is_bent) {
  Direction<Scalar> rest = slope;
  Direction<Scalar> t = rest;
  t.add(Scalar(-1), rest);
  Direction<Scalar> z = preconditioner.solved(rest);
  Direction<Scalar> direction = z;
  double rz = rest.dot(z);
  const double enough = rz * share;
  while (rz > enough && rz > 0 && goes_on()) {
    const Direction<Scalar> Hd = H_times(direction);
    const double curvature = direction.dot(Hd);
    if (!is_bent(curvature, direction)) break;
    const auto step = static_cast<Scalar>(rz / curvature);
    t.add(step, direction);
    rest.add(-step, Hd);
    z = preconditioner.solved(rest);
    const double next = rest.dot(z);
    direction.scale_and_add(static_cast<Scalar>(next / rz), z);
    rz = next;
  }
  return {std::move(t), std::move(rest)};
}

}  // namespace

template <typename Scalar>
Descent<Scalar>::Descent(const std::shared_ptr<const RowLooks<Scalar>>& looks, const NewtonOptions& options)
    : options_(options), rows_(looks, options), preconditioner_(*looks, options) {}

template <typename Scalar>
void Descent<Scalar>::start(SignedFactors<Scalar> parameters) {
  parameters_ = std::move(parameters);
  loss_ = rows_.move_to(parameters_);
  objective_ = loss_ + ridge_of(parameters_);
  has_moved_ = false;
  damping_ = 1e-2;
  stalled_ = 0;
}

template <typename Scalar>
bool Descent<Scalar>::is_exact() const {
  // Of squares: without noise a fit gets there, or nowhere near.
  constexpr double exact_ratio = std::is_same_v<Scalar, float> ? 1e-9 : 1e-14;
  return options_.likelihood->has_noise_variance() && loss_ <= exact_ratio * rows_.constant_loss();
}

template <typename Scalar>
double Descent<Scalar>::ridge_of(const SignedFactors<Scalar>& parameters) const {
  const auto squares = [](const auto& numbers) { return numbers.template cast<double>().squaredNorm(); };
  return (options_.ridge.weights * (squares(parameters.weights) + squares(parameters.squares)) +
          options_.ridge.factors * squares(parameters.A)) /
         (2 * rows_.total_weight());
}

/// this += scale * ridge * v.
template <typename Scalar>
void Descent<Scalar>::add_ridge(Scalar scale, const Vector<Scalar>& weights, const Tall<Scalar>& factors,
                                const Vector<Scalar>& squares, Direction<Scalar>& to) const {
  const Scalar of_weights = scale * static_cast<Scalar>(options_.ridge.weights);
  if (options_.shape.linear) to.features.col(0) += of_weights * weights;
  to.features.rightCols(options_.shape.rank) += scale * static_cast<Scalar>(options_.ridge.factors) * factors;
  if (to.squares.size() > 0) to.squares += of_weights * squares;
}

/// J'r - ridge theta.
template <typename Scalar>
Direction<Scalar> Descent<Scalar>::slope() const {
  Direction<Scalar> slope = rows_.descent();
  add_ridge(Scalar(-1), parameters_.weights, parameters_.A, parameters_.squares, slope);
  return slope;
}

/// The same equations as in `solve`, one per row.
template <typename Scalar>
Direction<Scalar> Descent<Scalar>::solve_dual() {
  const Direction<Scalar> slope = this->slope();
  Direction<Scalar> ones = slope;
  ones.intercept = 1;
  ones.features.setOnes();
  ones.squares.setOnes();
  Direction<Scalar> diagonal = preconditioner_.damped(ones);
  add_ridge(Scalar(1), ones.features.col(0), ones.features.rightCols(options_.shape.rank), ones.squares, diagonal);
  Direction<Scalar> offset = slope;
  offset.add(Scalar(-1), slope);
  add_ridge(Scalar(1), parameters_.weights, parameters_.A, parameters_.squares, offset);
  Direction<Scalar> t = rows_.solve_dual(diagonal, offset);
  predicted_gain_ = (slope.dot(t) + preconditioner_.damped(t).dot(t)) / (2 * rows_.total_weight());
  return t;
}

/// (J'HJ + ridge + damping D) t = slope by conjugate gradients, up to a share of it.
template <typename Scalar>
Direction<Scalar> Descent<Scalar>::solve(double tolerance) {
  if (rows_.prefers_dual()) return solve_dual();
  const Direction<Scalar> slope = this->slope();
  int left = options_.exact_steps ? 2000 : 200;
  const auto goes_on = [&] { return left-- > 0 && products() < options_.most_products && !is_interrupted(); };
  const auto times = [&](const Direction<Scalar>& direction) {
    Direction<Scalar> Hd = rows_.curvature_times(direction);
    Hd.add(Scalar(1), preconditioner_.damped(direction));
    add_ridge(Scalar(1), direction.features.col(0), direction.features.rightCols(options_.shape.rank),
              direction.squares, Hd);
    return Hd;
  };
  const auto is_bent = [](double curvature, const Direction<Scalar>&) { return curvature > 0; };
  const auto [t, rest] = conjugate_gradients(slope, tolerance * tolerance, preconditioner_, goes_on, times, is_bent);
  // slope't - t'(H + ridge)t / 2, where t solves the damped equations up to `rest`.
  predicted_gain_ = (slope.dot(t) + rest.dot(t) + preconditioner_.damped(t).dot(t)) / (2 * rows_.total_weight());
  return t;
}

template <typename Scalar>
bool Descent<Scalar>::step() {
  constexpr double least_progress = 1e-3;
  constexpr double no_progress = 1e-7;
  constexpr double epsilon = std::numeric_limits<Scalar>::epsilon();
  constexpr double most_damping = 1e6;
  const bool has_ridge = options_.ridge.weights > 0 || options_.ridge.factors > 0;
  const bool is_done = !has_ridge && loss_ <= 1e2 * epsilon * epsilon * rows_.constant_loss();
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
  const Direction<Scalar> t =
      solve(options_.exact_steps ? 1e-12 : std::min(0.1, std::sqrt(loss_ / rows_.constant_loss())));
  if (is_interrupted()) return false;  // t is not complete
  SignedFactors<Scalar> next = moved(parameters_, t);
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

template <typename Scalar>
void Descent<Scalar>::run() {
  constexpr int most_steps = 60;
  for (int i = 0; i < most_steps && !is_interrupted() && step();) ++i;
}

/// The slope at other parameters, which are then the present ones.
template <typename Scalar>
Direction<Scalar> Descent<Scalar>::slope_at(SignedFactors<Scalar> parameters) {
  parameters_ = std::move(parameters);
  loss_ = rows_.move_to(parameters_);
  return slope();
}

/// (H + damping) t = slope by conjugate gradients, with all of the Hessian H, whose products are differences of slopes.
template <typename Scalar>
Direction<Scalar> Descent<Scalar>::newton_step(const Direction<Scalar>& slope, double damping, Index last_product) {
  const SignedFactors<Scalar> here = parameters_;
  const double size =
      std::sqrt(here.weights.template cast<double>().squaredNorm() + here.A.template cast<double>().squaredNorm() + 1);
  preconditioner_.move_to(rows_, here);
  preconditioner_.set_damping(1e-9);
  const auto times = [&](const Direction<Scalar>& direction) {
    const auto apart = static_cast<Scalar>(1e-5 * size / std::sqrt(direction.dot(direction)));
    const auto moved_by = [&](Scalar step) {
      Direction<Scalar> by = direction;
      by.scale_and_add(step - Scalar(1), direction);
      return moved(here, by);
    };
    Direction<Scalar> Hd = slope_at(moved_by(-apart));
    Hd.add(Scalar(-1), slope_at(moved_by(apart)));
    Hd.scale_and_add(1 / (2 * apart) - Scalar(1), Hd);
    Hd.add(static_cast<Scalar>(damping * total_weight()), direction);
    return Hd;
  };
  // Factors of one sign can be turned into each other without any bend, and what differences see there is rounding.
  double largest_bend = 0;
  const auto is_bent = [&](double curvature, const Direction<Scalar>& direction) {
    constexpr double flat = 1e-7;
    const double bend = curvature / direction.dot(direction);
    largest_bend = std::max(largest_bend, bend);
    return bend > flat * largest_bend;
  };
  constexpr double enough = 1e-14;  // of squares
  const auto goes_on = [&] { return products() < last_product && !is_interrupted(); };
  Direction<Scalar> t = conjugate_gradients(slope, enough, preconditioner_, goes_on, times, is_bent).first;
  parameters_ = here;
  return t;
}

template <typename Scalar>
void Descent<Scalar>::polish(Index most_products) {
  const Index last_product = products() + most_products;
  const auto goes_on = [&] { return products() < last_product && !is_interrupted(); };
  const auto descend = [&] {
    constexpr double hardly = 1e-9;
    constexpr int rounds = 6;
    constexpr int steps_of_round = 5;  // some of which only find a better damping
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
  // The loss is flat to rounding long before the parameters are where they belong; the slope is not.
  constexpr double least_damping = 1e-8;
  constexpr double most_damping = 1e2;
  double damping = 0;
  Direction<Scalar> rest = slope_at(parameters_);
  double steepness = rest.dot(rest);
  objective_ = loss_ + ridge_of(parameters_);
  constexpr double rounding = 1e-13;
  const double flat = std::pow(rounding * total_weight(), 2);
  while (steepness > flat && damping < most_damping && goes_on()) {
    const SignedFactors<Scalar> before = parameters_;
    const Direction<Scalar> next = slope_at(moved(before, newton_step(rest, damping, last_product)));
    const double now = next.dot(next);
    const double objective = loss_ + ridge_of(parameters_);
    if (now < steepness || objective < (1 - rounding) * objective_) {
      rest = next;
      steepness = now;
      objective_ = objective;
      damping = damping > least_damping ? damping / 10 : 0;
      continue;
    }
    parameters_ = before;
    damping = std::max(10 * damping, least_damping);
  }
  (void)slope_at(parameters_);
  objective_ = loss_ + ridge_of(parameters_);
  has_moved_ = false;
}

template class Descent<float>;
template class Descent<double>;

}  // namespace dyad
