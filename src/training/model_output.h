#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include <dyad/data_error.h>

#include "base/locked_file.h"
#include "model/low_rank.h"
#include "training/constant_probability.h"

namespace dyad {

/// Name of the model in messages.
inline std::string model_name(const TrainOptions& options) {
  return options.model_path.empty() ? "the model" : options.model_path;
}

/// Writes the model of a training run to its file. Does not own its arguments; the caller keeps them alive.
template <typename Scalar>
class ModelOutput {
 public:
  /// `output`: at options.model_path; unused if that is empty.
  ModelOutput(const TrainOptions& options, TrainState<Scalar>& state, const ConstantProbability<Scalar>& constant,
              LockedFile& output)
      : options_(options), state_(state), constant_(constant), output_(output) {}

  /// Replaces the file. Without a path, completes the model of the solver only.
  void save() {
    if (options_.model_path.empty()) {
      (void)state_.solver->model();
      return;
    }
    output_.replace(updated_file().to_bytes());
    state_.release_saved();
  }

  /// The content of the file for the present state of the solver. Throws DataError if the model is not finite.
  ModelFile& updated_file() {
    const FeatureMap& map = state_.file.features;
    state_.solver->grow(map.dim(), map.left_dim());
    state_.save([&](Model<double>& model) { complete(model); });
    return state_.file;
  }

 private:
  void complete(Model<double>& model) const {
    const FeatureMap& map = state_.file.features;
    if (map.hash_bits > 0 && state_.settings.solver == Solver::moment) {
      std::vector<bool> is_unused(static_cast<std::size_t>(map.dim()));
      for (Index j = 0; j < map.dim(); ++j) is_unused[static_cast<std::size_t>(j)] = !map.is_used(j);
      clear_features(model, is_unused);
    }
    if (constant_.applies()) constant_.apply_to(model);
    if (!model.is_finite())
      throw DataError(options_.data.name(), 0, 0,
                      "these numbers have led to a model that is not finite, which was not saved (" +
                          model_name(options_) + " is as it was before); expected sizes nearer to 1: rescale them");
  }

  const TrainOptions& options_;
  TrainState<Scalar>& state_;
  const ConstantProbability<Scalar>& constant_;
  LockedFile& output_;
};

}  // namespace dyad
