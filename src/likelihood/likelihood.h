#pragma once

#include <limits>
#include <memory>
#include <string>

#include <dyad/dataset.h>
#include <dyad/types.h>

namespace dyad {

/// Interval that contains all targets, in the encoded units of the solver. An infinite end means no bound.
struct Support {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  /// True if at least one end is finite.
  [[nodiscard]] bool is_bounded() const;
  [[nodiscard]] double clamp(double value) const;
};

/// Distribution of a target y given the linear predictor f of its row (the value of the model before the inverse link).
///
/// y is the encoded target: numeric targets are centered and scaled, classes are -1 and +1. Losses are negative
/// log-likelihoods without the terms that do not depend on f. For a likelihood with a noise variance s2 they are
/// multiplied by s2, so that derivatives do not depend on s2.
///
/// Thread-safe: objects are immutable.
class Likelihood {
 public:
  virtual ~Likelihood() = default;
  Likelihood(const Likelihood&) = delete;
  Likelihood& operator=(const Likelihood&) = delete;

  /// Loss of a row at f with its first two derivatives with respect to f.
  struct Expansion {
    double loss = 0;
    double gradient = 0;   ///< of the log-likelihood: the negative derivative of the loss
    double curvature = 0;  ///< second derivative, or a positive upper bound of it. If the gradient is also 0, the row
                           ///< carries no information at this f.
  };
  [[nodiscard]] virtual Expansion expand(double y, double f) const = 0;
  [[nodiscard]] virtual double loss(double y, double f) const = 0;

  /// Gaussian approximation of the posterior of f after one row, for the prior f ~ N(mean, variance):
  ///   mean += variance * gain,   variance -= variance^2 * innovation_precision.
  /// All fields are 0 if the row carries no information.
  struct Update {
    double gradient = 0;              ///< Expansion::gradient at the prior mean
    double gain = 0;                  ///< innovation times its precision, for a Gaussian likelihood
    double innovation_precision = 0;  ///< inverse variance of the innovation y - mean, for a Gaussian likelihood
  };
  /// Update for a row of weight omega > 0. The default is a step of the extended Kalman filter: with gradient g and
  /// curvature c at the prior mean, and noise variance s2,
  ///   gain = g / (s2/omega + c variance),   innovation_precision = c / (s2/omega + c variance).
  /// `noise_variance` is 1 for likelihoods without a noise variance.
  [[nodiscard]] virtual Update update(double y, double mean, double variance, double weight,
                                      double noise_variance) const;

  /// Linear predictor whose mean() is the expected target for f ~ N(mean, variance), approximately. Equal to `mean` for
  /// an identity link.
  [[nodiscard]] virtual double posterior_predictor(double mean, double) const { return mean; }

  /// Expected target for a linear predictor: the inverse of the link function. For classes, the probability of the
  /// positive class.
  [[nodiscard]] virtual double mean(double f) const = 0;
  /// Linear predictor of an expected target: the link function.
  [[nodiscard]] virtual double link(double mean) const = 0;
  /// Derivative of mean(f) with respect to f, as a function of the mean.
  [[nodiscard]] virtual double mean_derivative(double mean) const = 0;
  /// Encoded target on the scale of mean(): the number itself, or 0 and 1 for the classes -1 and +1.
  [[nodiscard]] virtual double observed(double y) const = 0;

  /// Loss of a prediction in reports, with target and prediction on the scale of mean(): squared error or log-loss.
  [[nodiscard]] virtual double score(double observed, double mean) const = 0;
  /// Reported metric for a mean score: its square root (root mean squared error), or the score itself (log-loss).
  [[nodiscard]] virtual double metric(double mean_score) const = 0;
  /// Name of the metric in tables and JSON.
  [[nodiscard]] virtual const char* metric_name() const = 0;
  /// Mean score of the best constant prediction, given the mean and variance of observed().
  [[nodiscard]] virtual double constant_score(double mean, double variance) const = 0;
  /// Mean loss() of the best constant prediction, given the mean and variance of observed().
  [[nodiscard]] virtual double constant_loss(double mean, double variance) const = 0;

  /// Estimate of the mean of the targets from the weighted sum of observed() and the sum of the weights. Finite for any
  /// weight, and inside the domain of link().
  [[nodiscard]] virtual double constant_mean(double sum, double weight) const = 0;
  /// Prior variance of the linear predictor, given the variance of the encoded targets.
  [[nodiscard]] virtual double predictor_variance(double target_variance) const = 0;

  /// True if the expected target equals f. Moment solvers require it, and targets are centered and scaled only then.
  [[nodiscard]] virtual bool has_identity_link() const = 0;
  /// True if a noise variance is estimated with the model.
  [[nodiscard]] virtual bool has_noise_variance() const = 0;
  /// True if the curvature is 1 for all targets and all f.
  [[nodiscard]] virtual bool has_unit_curvature() const = 0;
  /// True if targets are one of two classes.
  [[nodiscard]] virtual bool is_classification() const = 0;
  /// Range of the targets. Targets at its finite ends are censored.
  [[nodiscard]] virtual Support support() const { return {}; }

  /// Quadratic lower bound of the expected log-likelihood, for variational updates: a Gaussian observation `target` of
  /// f with precision `precision`.
  struct QuadraticBound {
    double point = 0;      ///< variational parameter. Bernoulli: the bound is tight at |f| = point. Gaussian: `target`
    double target = 0;     ///< observation of f
    double precision = 1;  ///< in units of the noise precision
  };
  /// Bound that is optimal for f with the given mean and variance.
  [[nodiscard]] virtual QuadraticBound bound(double y, double mean, double variance) const = 0;
  /// True if bound_value() depends on QuadraticBound::point, so that solvers store it per row.
  [[nodiscard]] virtual bool needs_bound_points() const = 0;
  /// Value of the bound with the variational parameter `point`, in expectation over f with the given mean and variance.
  [[nodiscard]] virtual double bound_value(double y, double point, double mean, double variance,
                                           double noise_precision) const = 0;

 protected:
  Likelihood() = default;
};

using LikelihoodPointer = std::shared_ptr<const Likelihood>;

/// Likelihood of a task with unbounded support. The object has static lifetime.
const Likelihood& likelihood_of(Task task);

/// Creates the likelihood of a task. `support` applies to regression only; targets at its finite ends are censored.
LikelihoodPointer make_likelihood(Task task, Support support = {});

/// Log-loss -log P(observed) of a class `observed` (0 or 1), with `probability` the predicted probability of class 1.
/// P(observed) is clipped to at least 1e-15.
double log_loss(double observed, double probability);

}  // namespace dyad
