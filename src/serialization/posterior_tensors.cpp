#include "serialization/posterior_tensors.h"

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace dyad {
namespace {

constexpr const char* samples_name = "posterior.samples";
constexpr const char* log_variance_name = "posterior.log_variance";
constexpr const char* log_noise_name = "posterior.log_noise";

/// Calls visit(name, numbers) for all vectors.
template <typename Posterior, typename Visit>
void for_each_vector(Posterior& posterior, Visit&& visit) {
  visit("posterior.log_variances", posterior.log_variances);
  visit("posterior.log_noise_factors", posterior.log_noise_factors);
  visit("posterior.log_noise_deviations", posterior.log_noise_deviations);
  visit("posterior.unknown_weights", posterior.unknown_weights);
  visit("posterior.unknown_factors", posterior.unknown_factors);
}

}  // namespace

void add_sampled_posterior(const SampledPosterior& posterior, Safetensors& file) {
  file.tensors[samples_name] = make_tensor(std::vector<std::int64_t>{posterior.samples}, {1});
  file.tensors[log_variance_name] = make_tensor(std::vector<double>{posterior.log_variance}, {1});
  file.tensors[log_noise_name] = make_tensor(std::vector<double>{posterior.log_noise}, {1});
  for_each_vector(posterior, [&](const char* name, const std::vector<double>& numbers) {
    file.tensors[name] = make_tensor(numbers, {static_cast<Index>(numbers.size())});
  });
}

std::optional<SampledPosterior> read_sampled_posterior(const ModelReader& reader, const Model<double>& model) {
  if (!reader.has_tensor(samples_name)) return std::nullopt;
  SampledPosterior posterior;
  const auto samples = reader.values<std::int64_t>(samples_name);
  const auto log_variance = reader.values<double>(log_variance_name);
  const auto log_noise = reader.values<double>(log_noise_name);
  reader.require(samples.size() == 1 && log_variance.size() == 1 && log_noise.size() == 1,
                 "the posterior of the samples has tensors of the wrong size");
  posterior.samples = samples.front();
  posterior.log_variance = log_variance.front();
  posterior.log_noise = log_noise.front();
  for_each_vector(posterior,
                  [&](const char* name, std::vector<double>& numbers) { numbers = reader.values<double>(name); });
  try {
    posterior.validate(model);
  } catch (const std::invalid_argument& error) {
    reader.require(false, error.what());
  }
  return posterior;
}

}  // namespace dyad
