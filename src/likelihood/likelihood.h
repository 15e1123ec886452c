#pragma once

#include <limits>
#include <memory>
#include <string>

#include <dyad/data.h>

namespace dyad {

/// Interval that targets cannot leave, in the units of the solver. Infinite ends: none.
struct Support {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  [[nodiscard]] bool is_bounded() const;
  [[nodiscard]] double clamp(double value) const;
};

/// Distribution of a target y given the linear predictor f of its row. The only code that knows a loss.
///
/// Solvers see y as it is encoded: numbers are centred and scaled, classes are -1 and +1. Losses are negative
/// log-likelihoods without the terms that do not depend on f. For a likelihood with a noise variance s2 they are
/// multiplied by s2, so that no derivative depends on it.
///
/// Objects are immutable and can be used from any number of threads.
class Likelihood {
 public:
  virtual ~Likelihood() = default;
  Likelihood(const Likelihood&) = delete;
  Likelihood& operator=(const Likelihood&) = delete;

  /// Loss of one row with its first two derivatives.
  struct Expansion {
    double loss = 0;
    double gradient = 0;   ///< minus the derivative of the loss by f: a step along it lowers the loss
    double curvature = 0;  ///< second derivative, or a positive bound of it; 0 together with the gradient: the row
                           ///< carries no information at this f
  };
  [[nodiscard]] virtual Expansion expand(double y, double f) const = 0;
  [[nodiscard]] virtual double loss(double y, double f) const = 0;

  /// Gaussian approximation of the posterior of f ~ N(mean, variance) after one row: the mean moves by variance * gain,
  /// and the variance shrinks by variance^2 * shrink. All 0: the row carries no information.
  struct Update {
    double gradient = 0;  ///< of the loss at the mean before the row, as in Expansion
    double gain = 0;
    double shrink = 0;
  };
  /// For a row that counts `weight` > 0 times. The default is a step of the extended Kalman filter: with gradient g and
  /// curvature c at the mean, noise s2 and weight omega, gain = g / (s2/omega + c variance) and
  /// shrink = c / (s2/omega + c variance). `noise_variance` is 1 for likelihoods without one.
  [[nodiscard]] virtual Update update(double y, double mean, double variance, double weight,
                                      double noise_variance) const;

  /// Expected target for a linear predictor: the inverse of the link function. For classes, the probability of the
  /// positive one.
  [[nodiscard]] virtual double mean(double f) const = 0;
  /// Linear predictor of an expected target.
  [[nodiscard]] virtual double link(double mean) const = 0;
  /// Derivative of mean(), written as a function of the mean.
  [[nodiscard]] virtual double mean_slope(double mean) const = 0;
  /// Target on the scale of mean(): the number itself, or 0 and 1 for classes.
  [[nodiscard]] virtual double observed(double y) const = 0;

  /// Loss that is reported to users, of a target and a prediction on the scale of mean(): squared error or log-loss.
  [[nodiscard]] virtual double score(double observed, double mean) const = 0;
  /// The figure that is shown for a mean score: its square root, or the score itself.
  [[nodiscard]] virtual double figure(double mean_score) const = 0;
  /// Its name in tables and JSON.
  [[nodiscard]] virtual const char* figure_name() const = 0;
  /// Mean score of the best constant, from mean and variance of the observed targets.
  [[nodiscard]] virtual double constant_score(double mean, double variance) const = 0;
  /// The same for loss().
  [[nodiscard]] virtual double constant_loss(double mean, double variance) const = 0;

  /// Estimate of a constant mean from a weighted sum of observed targets. Finite for any weight, and inside the domain
  /// of link().
  [[nodiscard]] virtual double constant_mean(double sum, double weight) const = 0;
  /// Variance of the linear predictor that a prior should allow for, given the variance of the encoded targets.
  [[nodiscard]] virtual double predictor_variance(double target_variance) const = 0;

  /// Whether the expected target is f itself. Moments of the targets estimate parameters only then; targets are centred
  /// and scaled only then.
  [[nodiscard]] virtual bool has_identity_link() const = 0;
  /// Whether a noise variance is estimated with the model.
  [[nodiscard]] virtual bool has_noise_variance() const = 0;
  /// Whether the curvature of all rows is 1, at any f.
  [[nodiscard]] virtual bool has_unit_curvature() const = 0;
  /// Whether targets are one of two labels.
  [[nodiscard]] virtual bool is_classification() const = 0;
  [[nodiscard]] virtual Support support() const { return {}; }

  /// Quadratic lower bound of the expected log-likelihood for f with the given mean and variance, as used by
  /// variational updates: a Gaussian observation `target` of f with this precision. `point` is where the bound is
  /// tight; it is stored per row if needs_bound_points().
  struct QuadraticBound {
    double point = 0;
    double target = 0;
    double precision = 1;  ///< in units of the noise precision
  };
  [[nodiscard]] virtual QuadraticBound bound(double y, double mean, double variance) const = 0;
  [[nodiscard]] virtual bool needs_bound_points() const = 0;
  /// Value of the bound that is tight at `point`.
  [[nodiscard]] virtual double bound_value(double y, double point, double mean, double variance,
                                           double noise_precision) const = 0;

 protected:
  Likelihood() = default;
};

using LikelihoodPointer = std::shared_ptr<const Likelihood>;

/// The likelihood of a task without a bounded support.
const Likelihood& likelihood_of(Task task);

/// The likelihood of a task. `support`: regression only; targets at its ends are censored.
LikelihoodPointer make_likelihood(Task task, Support support = {});

/// -log of the probability that was given to the observed class, 0 or 1. Probabilities are bounded away from 0 by
/// 1e-15.
double log_loss(double observed, double probability);

}  // namespace dyad
