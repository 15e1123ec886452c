#include "distributed/anova_driver.h"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "distributed/distributed_equations.h"
#include "solvers/anova/sums_fit.h"
#include "training/state/anova_training.h"
#include "training/state/train_state.h"

namespace dyad {
namespace {

const char* const start_model_name = "the model";

/// Requests for classes and censored targets. Each is a step of iteratively reweighted least squares from the fit of a
/// sample of the rows, which is close to that of all rows. The working responses of other targets do not depend on the
/// fit.
constexpr int linearized_requests = 3;

}  // namespace

std::string start_anova_workers(ModelFile file) {
  AnovaFit functions = load_anova_functions(file, start_model_name);
  TrainState<double> state{std::move(file), {}};
  state.settings = TrainSettings::load(state.file, start_model_name);
  ThreadPool pool(1);
  state.restore(TrainOptions(), start_model_name, pool);
  static_cast<AnovaTraining<double>&>(*state.solver).replace_rows_by_sums(std::move(functions));
  state.save();
  return state.file.to_bytes();
}

DistributedSummary train_anova_workers(ModelFile file, const DistributedOptions& options) {
  AnovaFit reference = load_anova_functions(file, start_model_name);
  TrainSettings settings = TrainSettings::load(file, start_model_name);
  Target& target = file.features.target;
  const AnovaOptions anova = anova_options(target);
  // A start model that was not trained on rows of the workers contributes its sums.
  const std::optional<BasisSums> other_rows =
      options.trained_share > 0 ? std::nullopt : load_anova_sums(file, reference);
  if (options.trained_share == 0 && !other_rows)
    throw std::invalid_argument(
        "model: the file contains neither the rows nor the sums of the model, so training cannot continue; train again "
        "with all rows");
  const bool is_linearized = anova.is_classification || anova.low || anova.high;
  WorkerRequests requests(options);
  DistributedSummary summary;
  AnovaFit fit;
  BasisSums sums;
  for (int step = 0; step < (is_linearized ? linearized_requests : 1); ++step) {
    if (step > 0) {
      reference.model = fit.model;
      reference.prior = fit.prior;
    }
    Request request;
    request.type = Request::Type::anova_sums;
    const Statistics statistics = requests(request, [&](Archive& body) { archive_functions(body, reference.model); });
    Archive response(statistics.sums);
    sums = BasisSums(reference.model);
    response.group("sums", [&] { sums.archive(response); });
    if (other_rows) sums.add(*other_rows);
    summary.rows = statistics.rows();
    fit = fit_sums(reference.model, reference.prior, sums, anova);
    if (likelihood_of(target.task).has_identity_link()) {
      target.update_bounds(statistics.min_target);
      target.update_bounds(statistics.max_target);
    }
    const double scale = target.scaling.scale;
    const double loss = fit.held_out_loss * scale;
    if (options.progress)
      options.progress({fmt::format("sums {}", step + 1), 1, -1, anova.is_classification ? -1 : loss});
  }
  summary.requests = requests.count;
  summary.origin = fmt::format("smoothing-spline ANOVA: {} functions, from sums over the rows of all workers",
                               fit.model.blocks.size());
  settings.rows = (other_rows ? settings.rows : 0) + summary.rows;
  TrainState<double> state{std::move(file), settings};
  ThreadPool pool(1);
  auto training = std::make_unique<AnovaTraining<double>>(settings, state.file.features, TrainOptions().memory, true,
                                                          pool, std::function<bool()>(), FitProgress());
  training->set_sums(std::move(reference), std::move(sums), std::move(fit), settings.rows);
  state.solver = std::move(training);
  state.save();
  summary.model = state.file.to_bytes();
  return summary;
}

}  // namespace dyad
