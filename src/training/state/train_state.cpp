#include "training/state/train_state.h"

#include <stdexcept>
#include <utility>

#include <dyad/error.h>

namespace dyad {
namespace {

/// Name of `median_squared_norm` in the state of a model file.
const char* const squared_norm_name = "usual_length";

}  // namespace

template <typename Scalar>
void TrainState<Scalar>::restore(const TrainOptions& options, const std::string& name, ThreadPool& pool,
                                 const std::function<bool()>& interrupted, const FitProgress& progress) {
  solver = make_train_solver<Scalar>(options, settings, file.features, pool, nullptr, interrupted, progress);
  Archive saved(std::exchange(file.state, {}));
  try {
    archive(saved);
  } catch (const std::runtime_error& error) {
    throw DataError(name, 0, 0, std::string("training cannot be resumed from this model: ") + error.what());
  }
}

template <typename Scalar>
void TrainState<Scalar>::save(const std::function<void(Model<double>&)>& complete) {
  if (const AnovaModel* anova = solver->anova()) {
    if (!anova->is_finite()) throw std::runtime_error("training on these values gave a model that is not finite");
    file.anova = *anova;
    solver->set_clipping(file.features);
  }
  file.model = solver->model();
  if (complete) complete(file.model);
  file.sampled = sampled;
  file.training = settings.to_text();
  Archive saved;
  archive(saved);
  file.state = saved.take();
}

template <typename Scalar>
void TrainState<Scalar>::release_saved() {
  file.model = Model<double>(0, 0);
  file.anova.reset();
  file.state = {};
}

template <typename Scalar>
void TrainState<Scalar>::archive(Archive& archive) {
  solver->archive(archive);
  archive.number(squared_norm_name, median_squared_norm);
  if (evidence && likelihood_of(file.features.target.task).is_classification())
    archive.group("evidence", [&] { evidence->archive(archive); });
}

SavedPosterior SavedPosterior::load(const ModelFile& file, const std::string& path) {
  const auto solver = file.training.find("solver");
  if (solver == file.training.end() || solver->second == "moment")
    throw std::invalid_argument("the model in " + path +
                                " has no error bars; train it with the solver auto, anova, kalman, newton or sampling");
  const TrainSettings settings = TrainSettings::load(file, path);
  SavedPosterior result{KalmanFilter<double>(kalman_options(settings, file.features), Prior(), 1)};
  Archive saved(file.state);
  try {
    // Candidate 0 of the filter selection is the best one.
    saved.group("kalman",
                [&] { saved.group("race", [&] { saved.group("0", [&] { result.filter.archive(saved); }); }); });
    if (saved.has(squared_norm_name)) saved.number(squared_norm_name, result.median_squared_norm);
  } catch (const std::runtime_error& error) {
    throw DataError(path, 0, 0, std::string("the error bars cannot be read: ") + error.what());
  }
  return result;
}

template struct TrainState<float>;
template struct TrainState<double>;

}  // namespace dyad
