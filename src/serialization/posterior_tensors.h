#pragma once

#include <optional>

#include "model/sampled_posterior.h"
#include "serialization/model_reader.h"

namespace dyad {

/// Adds the posterior of an average of samples to a file as tensors `posterior.*` (docs/model-file.md).
void add_sampled_posterior(const SampledPosterior& posterior, Safetensors& file);

/// Reads the posterior of a model; null if the file has none. Throws DataError if tensors are missing, contradict the
/// model, or are not finite.
std::optional<SampledPosterior> read_sampled_posterior(const ModelReader& reader, const Model<double>& model);

}  // namespace dyad
