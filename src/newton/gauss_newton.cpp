#include "newton/gauss_newton.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "newton/jacobian.h"
#include "newton/start.h"

namespace dyad {
namespace {

/// Levenberg-Marquardt from one start.
template <typename Scalar>
class Descent {
 public:
  Descent(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers)
      : options_(options),
        J_(rows, {options.linear, options.intercept}, workers),
        y_(rows.count()),
        weight_(rows.count()) {
    for (Index i = 0; i < rows.count(); ++i) {
      y_[i] = rows.targets()[static_cast<std::size_t>(i)];
      weight_[i] = rows.weight(i);
    }
    const double mean = dot(weight_, y_) / total_weight();
    spread_ = (weight_.template cast<double>().array() * (y_.template cast<double>().array() - mean).square()).sum() /
              total_weight();
  }

  NewtonFit<Scalar> run(SignedFactors<Scalar> start) {
    NewtonFit<Scalar> fit;
    fit.starts = 1;
    const Index products_before = J_.products();
    parameters_ = std::move(start);
    cost_ = cost_at(parameters_, residuals_);
    double damping = 1e-2;
    int stalled = 0;
    constexpr int most_steps = 60;
    while (fit.steps < most_steps && stalled < 3 && cost_ > smallest() && J_.products() < options_.most_products &&
           !interrupted()) {
      ++fit.steps;
      J_.move_to(parameters_);
      const Direction<Scalar> t = solve(damping);
      SignedFactors<Scalar> next = moved(t);
      Vector<Scalar> residuals;
      const double cost = cost_at(next, residuals);
      const bool better = cost < cost_;  // false for NaN
      const double gain = better ? (cost_ - cost) / std::max(predicted_gain_, std::numeric_limits<double>::min()) : 0;
      if (better) {
        stalled = cost > (1 - least_progress) * cost_ ? stalled + 1 : 0;
        parameters_ = std::move(next);
        residuals_ = std::move(residuals);
        cost_ = cost;
      } else if (damping > 1e6) {
        break;
      }
      if (gain > 0.75)
        damping = std::max(damping / 5, 1e-12);
      else if (gain < 0.25)
        damping *= 4;
    }
    fit.parameters = parameters_;
    fit.residual_squares = cost_;
    fit.exact = cost_ <= exact_ratio * spread_;
    fit.finite = std::isfinite(cost_);
    fit.products = J_.products() - products_before;
    return fit;
  }

 private:
  static constexpr double epsilon = std::numeric_limits<Scalar>::epsilon();
  /// Of squares: without noise a fit gets there, or nowhere near.
  static constexpr double exact_ratio = std::is_same_v<Scalar, float> ? 1e-9 : 1e-14;
  static constexpr double least_progress = 1e-3;

  [[nodiscard]] static double dot(const Vector<Scalar>& a, const Vector<Scalar>& b) {
    return a.template cast<double>().dot(b.template cast<double>());
  }
  [[nodiscard]] double total_weight() const { return weight_.template cast<double>().sum(); }
  [[nodiscard]] double smallest() const { return 1e2 * epsilon * epsilon * spread_; }
  [[nodiscard]] bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  double cost_at(const SignedFactors<Scalar>& parameters, Vector<Scalar>& residuals) {
    residuals = y_ - J_.move_to(parameters);
    return (weight_.template cast<double>().array() * residuals.template cast<double>().array().square()).sum() /
           total_weight();
  }

  /// (J'WJ + damping D) t = J'W r by conjugate gradients, preconditioned by D.
  Direction<Scalar> solve(double damping) {
    const Vector<Scalar> scales = static_cast<Scalar>(total_weight()) * J_.column_scales();
    const auto weight_of_intercept = static_cast<Scalar>(total_weight());
    const auto scaled = [&](const Direction<Scalar>& v, Scalar factor, bool inverse) {
      Direction<Scalar> result = v;
      const Vector<Scalar> by = inverse ? Vector<Scalar>(scales.cwiseInverse()) : scales;
      result.features = factor * (v.features * by.asDiagonal());
      // Squares of standardised features have a variance of 2.
      const Scalar of_squares = 2 * weight_of_intercept;
      result.squares = v.squares * (inverse ? factor / of_squares : factor * of_squares);
      result.intercept = v.intercept * (inverse ? factor / weight_of_intercept : factor * weight_of_intercept);
      return result;
    };
    Direction<Scalar> rest = J_.transposed_times(weight_.cwiseProduct(residuals_));
    const Direction<Scalar> slope = rest;
    Direction<Scalar> t = scaled(rest, Scalar(0), false);
    Direction<Scalar> z = scaled(rest, Scalar(1), true);
    Direction<Scalar> direction = z;
    double rz = rest.dot(z);
    const double enough = rz * std::pow(std::min(0.1, std::sqrt(cost_ / spread_)), 2);
    constexpr int most_products = 200;
    for (int i = 0; i < most_products && rz > enough && rz > 0 && J_.products() < options_.most_products; ++i) {
      const Vector<Scalar> Jd = J_.times(direction);
      Direction<Scalar> Hd = J_.transposed_times(weight_.cwiseProduct(Jd));
      Hd.add(Scalar(1), scaled(direction, static_cast<Scalar>(damping), false));
      const double curvature = direction.dot(Hd);
      if (!(curvature > 0)) break;
      const auto step = static_cast<Scalar>(rz / curvature);
      t.add(step, direction);
      rest.add(-step, Hd);
      z = scaled(rest, Scalar(1), true);
      const double next = rest.dot(z);
      direction.scale_and_add(static_cast<Scalar>(next / rz), z);
      rz = next;
    }
    // |r|^2 - |r - Jt|^2, where t solves the damped equations up to `rest`.
    const double damped = scaled(t, static_cast<Scalar>(damping), false).dot(t);
    predicted_gain_ = (slope.dot(t) + rest.dot(t) + damped) / total_weight();
    return t;
  }

  [[nodiscard]] SignedFactors<Scalar> moved(const Direction<Scalar>& t) const {
    SignedFactors<Scalar> next = parameters_;
    next.intercept += t.intercept;
    next.weights += t.features.col(0);
    next.A += t.features.rightCols(next.rank());
    if (next.squares.size() > 0) next.squares += t.squares;
    return next;
  }

  const NewtonOptions& options_;
  Jacobian<Scalar> J_;
  Vector<Scalar> y_;
  Vector<Scalar> weight_;
  double spread_ = 0;  ///< the targets' variance
  SignedFactors<Scalar> parameters_;
  Vector<Scalar> residuals_;
  double cost_ = 0;
  double predicted_gain_ = 0;
};

/// Numbers of positive factors to try, the moments' own first.
std::vector<Index> sign_counts(const NewtonOptions& options, Index own) {
  if (options.positive || options.left_dim > 0) return {options.rank};
  std::vector<Index> counts;
  for (Index a = 0; a <= options.rank; ++a) counts.push_back(a);
  std::stable_sort(counts.begin(), counts.end(),
                   [&](Index a, Index b) { return std::abs(a - own) < std::abs(b - own); });
  if (!options.restarts) counts.resize(1);
  return counts;
}

}  // namespace

template <typename Scalar>
NewtonFit<Scalar> gauss_newton(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers,
                               const SignedFactors<Scalar>* known) {
  Descent<Scalar> descent(rows, options, workers);
  NewtonFit<Scalar> best;
  if (known != nullptr) best = descent.run(*known);
  if (best.exact || (known != nullptr && !options.restarts)) return best;
  const MomentStart<Scalar> moments = moment_start(rows, options, workers);
  for (const Index positive : sign_counts(options, moments.positive_count(options.rank))) {
    NewtonFit<Scalar> fit = descent.run(moments.take(options, positive));
    fit.starts += best.starts;
    fit.steps += best.steps;
    fit.products += best.products;
    const bool better = best.starts == 0 || fit.residual_squares < best.residual_squares;
    if (better) {
      best = std::move(fit);
    } else {
      best.starts = fit.starts;
      best.steps = fit.steps;
      best.products = fit.products;
    }
    if (best.exact || (options.interrupted && options.interrupted())) break;
  }
  return best;
}

template struct NewtonFit<float>;
template struct NewtonFit<double>;
template NewtonFit<float> gauss_newton(const Rows<float>&, const NewtonOptions&, Workers&, const SignedFactors<float>*);
template NewtonFit<double> gauss_newton(const Rows<double>&, const NewtonOptions&, Workers&,
                                        const SignedFactors<double>*);

}  // namespace dyad
