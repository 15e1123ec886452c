#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include <dyad/error.h>

#include "base/locked_file.h"
#include "model/low_rank.h"
#include "training/constant_probability.h"

namespace dyad {

/// Name of the model in messages: its path, or "the model" without one.
inline std::string model_name(const TrainOptions& options) {
  return options.model_path.empty() ? "the model" : options.model_path;
}

/// Writes the model of a training run to its file. Does not own its arguments; the caller keeps them alive. Not
/// thread-safe.
template <typename Scalar>
class ModelOutput {
 public:
  /// `output`: the locked file at options.model_path. Not used if the path is empty.
  ModelOutput(const TrainOptions& options, TrainState<Scalar>& state, const ConstantProbability<Scalar>& constant,
              LockedFile& output)
      : options_(options), state_(state), constant_(constant), output_(output) {}

  /// Replaces the file by the current model. Without a path, only calls TrainSolver::model(), which fits
  /// rows that are still buffered.
  void save() {
    if (options_.model_path.empty()) {
      (void)state_.solver->model();
      return;
    }
    const ModelFile& file = updated_file();
    output_.replace([&](OutputFile& output) { file.write([&](std::string_view part) { output.write(part); }); });
    state_.release_saved();
  }

  /// Returns the file content for the current state of the solver. Throws DataError if the model is not finite.
  ModelFile& updated_file() {
    const FeatureMap& map = state_.file.features;
    state_.solver->grow(map.dim(), map.left_dim());
    state_.save([&](Model<double>& model) { complete(model); });
    if (constant_.replaces_model()) state_.file.sampled.reset();
    return state_.file;
  }

 private:
  /// Clears unused features, applies the constant fallback and checks that the model is finite.
  void complete(Model<double>& model) const {
    const FeatureMap& map = state_.file.features;
    if (map.hash_bits > 0 && state_.settings.solver == Solver::moment) {
      std::vector<bool> is_unused(static_cast<std::size_t>(map.dim()));
      for (Index j = 0; j < map.dim(); ++j) is_unused[static_cast<std::size_t>(j)] = !map.is_used(j);
      clear_features(model, is_unused);
    }
    if (constant_.replaces_model()) constant_.apply_to(model);
    if (!model.is_finite())
      throw DataError(options_.data.name(), 0, 0,
                      "training on these values gave a model that is not finite; it was not saved, and " +
                          model_name(options_) + " is unchanged (rescale the columns to values near 1)");
  }

  const TrainOptions& options_;
  TrainState<Scalar>& state_;
  const ConstantProbability<Scalar>& constant_;
  LockedFile& output_;
};

}  // namespace dyad
