#include "solvers/sampling/hyperpriors.h"

#include <cmath>

#include "solvers/sampling/random_draws.h"

namespace dyad {

Hyperpriors::Hyperpriors(Index groups, std::vector<double> deviations) : deviations_(std::move(deviations)) {
  means_.resize(static_cast<std::size_t>(groups * places()));
  for (Index group = 0; group < groups; ++group)
    for (const double deviation : deviations_) precisions_.push_back(1 / (deviation * deviation));
}

void Hyperpriors::draw(const FeatureParameters& parameters, const FeatureGroups& groups,
                       const std::vector<bool>& is_drawn, const std::vector<bool>& has_square, std::uint64_t seed,
                       Index sweep) {
  std::vector<double> counts(means_.size());
  std::vector<double> sums(means_.size());
  std::vector<double> squares(means_.size());
  for (std::size_t j = 0; j < is_drawn.size(); ++j) {
    if (!is_drawn[j]) continue;
    const auto first = static_cast<std::size_t>(groups.group_of[j] * places());
    const Index used = has_square[j] ? places() : places() - 1;
    for (Index place = 0; place < used; ++place) {
      const std::size_t at = first + static_cast<std::size_t>(place);
      const double value = parameters.at(static_cast<Index>(j), place);
      const double deviation = value - means_[at];
      counts[at] += 1;
      sums[at] += value;
      squares[at] += deviation * deviation;
    }
  }
  for (Index group = 0; group < this->groups(); ++group) {
    Random random = draw_random(seed, sweep, DrawPurpose::hyperprior, group);
    for (Index place = 0; place < places(); ++place) {
      const auto at = static_cast<std::size_t>(group * places() + place);
      if (counts[at] == 0) continue;
      const double scale = deviation(place) * deviation(place);
      // One observation belongs to the precision itself, and one to the mean.
      const double shape = (counts[at] + 2) / 2;
      precisions_[at] = draw_gamma(random, shape) / ((scale + means_[at] * means_[at] + squares[at]) / 2);
      means_[at] = sums[at] / (counts[at] + 1) + random.normal() / std::sqrt((counts[at] + 1) * precisions_[at]);
    }
  }
}

}  // namespace dyad
