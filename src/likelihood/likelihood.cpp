#include "likelihood/likelihood.h"

#include <algorithm>
#include <cmath>

#include "likelihood/bernoulli.h"
#include "likelihood/gaussian.h"

namespace dyad {

bool Support::is_bounded() const { return std::isfinite(low) || std::isfinite(high); }

double Support::clamp(double value) const { return std::clamp(value, low, high); }

Likelihood::Update Likelihood::update(double y, double mean, double variance, double weight,
                                      double noise_variance) const {
  const Expansion at = expand(y, mean);
  if (at.gradient == 0 && at.curvature == 0) return {};
  const double total = noise_variance / weight + at.curvature * variance;
  return {at.gradient, at.gradient / total, at.curvature / total};
}

LikelihoodPointer make_likelihood(Task task, Support support) {
  switch (task) {
    case Task::regression:
      return std::make_shared<GaussianLikelihood>(support);
    case Task::classification:
      return std::make_shared<BernoulliLikelihood>();
  }
  return nullptr;
}

const Likelihood& likelihood_of(Task task) {
  static const GaussianLikelihood gaussian;
  static const BernoulliLikelihood bernoulli;
  return task == Task::classification ? static_cast<const Likelihood&>(bernoulli) : gaussian;
}

double log_loss(double observed, double probability) {
  constexpr double min_probability = 1e-15;  // bounds the loss of a row by -log(1e-15) = 34.5
  return -std::log(std::max(min_probability, observed > 0.5 ? probability : 1 - probability));
}

}  // namespace dyad
