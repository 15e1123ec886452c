#include "likelihood/likelihood.h"

#include <algorithm>
#include <cmath>

#include "likelihood/bernoulli.h"
#include "likelihood/gaussian.h"

namespace dyad {

bool Support::is_bounded() const { return std::isfinite(low) || std::isfinite(high); }

double Support::clamp(double value) const { return std::clamp(value, low, high); }

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
  constexpr double min_probability = 1e-15;  // the bound of scikit-learn's log_loss for double precision before 1.5
  return -std::log(std::max(min_probability, observed > 0.5 ? probability : 1 - probability));
}

}  // namespace dyad
