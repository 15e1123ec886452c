#include "training/state/train_state.h"

#include <stdexcept>
#include <utility>

#include <dyad/data_error.h>

namespace dyad {
namespace {

const char* const usual_length_name = "usual_length";

}  // namespace

template <typename Scalar>
void TrainState<Scalar>::restore(const TrainOptions& options, const std::string& name, ThreadPool& pool,
                                 const std::function<bool()>& interrupted) {
  solver = make_train_solver<Scalar>(options, settings, file.features, pool, nullptr, interrupted);
  Archive saved(std::exchange(file.state, {}));
  try {
    archive(saved);
  } catch (const std::runtime_error& error) {
    throw DataError(name, 0, 0, std::string("training cannot go on from this model: ") + error.what());
  }
}

template <typename Scalar>
void TrainState<Scalar>::save(const std::function<void(Model<double>&)>& complete) {
  file.model = solver->model();
  if (complete) complete(file.model);
  file.training = settings.to_text();
  Archive saved;
  archive(saved);
  file.state = saved.take();
}

template <typename Scalar>
void TrainState<Scalar>::release_saved() {
  file.model = Model<double>(0, 0);
  file.state = {};
}

template <typename Scalar>
void TrainState<Scalar>::archive(Archive& archive) {
  solver->archive(archive);
  archive.number(usual_length_name, usual_length);
  if (evidence && likelihood_of(file.features.target.task).is_classification())
    archive.group("evidence", [&] { evidence->archive(archive); });
}

SavedPosterior SavedPosterior::load(const ModelFile& file, const std::string& path) {
  const auto solver = file.training.find("solver");
  if (solver == file.training.end() || solver->second == "moment")
    throw std::invalid_argument("the model in " + path +
                                " has no error bars; those that train makes with --solver auto or kalman do");
  const TrainSettings settings = TrainSettings::saved(file, path);
  SavedPosterior result{KalmanFilter<double>(kalman_options(settings, file.features), Prior(), 1)};
  Archive saved(file.state);
  try {
    saved.group("kalman",
                [&] { saved.group("race", [&] { saved.group("0", [&] { result.filter.archive(saved); }); }); });
    if (saved.has(usual_length_name)) saved.number(usual_length_name, result.usual_length);
  } catch (const std::runtime_error& error) {
    throw DataError(path, 0, 0, std::string("the error bars cannot be read: ") + error.what());
  }
  return result;
}

template struct TrainState<float>;
template struct TrainState<double>;

}  // namespace dyad
