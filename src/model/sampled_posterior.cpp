#include "model/sampled_posterior.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace dyad {
namespace {

std::size_t position(Index i) { return static_cast<std::size_t>(i); }

/// Terms of unknown features: their weights, and their interactions with the row and with each other.
double unknown_terms(const SampledPosterior& posterior, const Model<double>& model, const Rows<double>& rows, Index i,
                     std::span<const Index> unknown) {
  const Index rank = model.rank();
  std::vector<double> projection(position(rank));
  double sum = 0;
  for (const Index group : unknown) sum += posterior.unknown_weights[position(group)];
  if (model.is_bilinear()) return sum;
  rows.for_each_entry(i, [&](Index j, double x) {
    for (Index c = 0; c < rank; ++c) projection[position(c)] += x * model.factors[position(j * rank + c)];
  });
  for (const Index group : unknown)
    for (Index c = 0; c < rank; ++c) {
      const double factor = posterior.unknown_factors[position(group * rank + c)];
      sum += 2 * model.spectrum[position(c)] * projection[position(c)] * factor;
      projection[position(c)] += factor;
    }
  return sum;
}

}  // namespace

SampledPosterior::Prediction SampledPosterior::predict(const Model<double>& model, const Rows<double>& rows, Index i,
                                                       double mean, std::span<const Index> unknown) const {
  const bool has_noise = !log_noise_factors.empty();
  double log_v = log_variance;
  double log_n = log_noise;
  const auto add = [&](std::size_t j, double x) {
    log_v += log_variances[j] * x * x;
    if (has_noise) log_n += log_noise_term(j);
  };
  rows.for_each_entry(i, [&](Index j, double x) {
    if (x != 0) add(position(j), x);
  });
  for (const Index group : unknown) add(position(model.dim() + group), 1);
  if (!unknown.empty()) mean += unknown_terms(*this, model, rows, i, unknown);
  return {mean, std::exp(log_v), has_noise ? std::exp(log_n) : 0.0};
}

void SampledPosterior::validate(const Model<double>& model) const {
  const std::size_t features = position(model.dim() + group_count());
  const auto require = [](bool condition) {
    if (!condition)
      throw std::invalid_argument("the posterior of the samples does not match the features of the model");
  };
  require(samples > 0 && log_variances.size() == features);
  require(log_noise_factors.empty() || log_noise_factors.size() == features);
  require(log_noise_deviations.size() == log_noise_factors.size());
  require(unknown_factors.size() == unknown_weights.size() * position(model.rank()));
  for (const auto* numbers :
       {&log_variances, &log_noise_factors, &log_noise_deviations, &unknown_weights, &unknown_factors})
    require(std::all_of(numbers->begin(), numbers->end(), [](double number) { return std::isfinite(number); }));
  require(std::isfinite(log_variance) && std::isfinite(log_noise));
}

}  // namespace dyad
