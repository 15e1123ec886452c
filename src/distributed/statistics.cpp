#include <dyad/distributed.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <dyad/error.h>

#include "distributed/message.h"
#include "encoding/sources/row_reader.h"
#include "training/state/train_state.h"

namespace dyad {
namespace {

const char* const statistics_model_name = "the model";
const char* const statistics_name = "the statistics";
const char* const target_bounds_name = "targets_seen";

/// One iteration of the moment solver whose sums come from several workers. Not thread-safe.
template <typename Scalar>
class MomentIteration {
 public:
  MomentIteration(ModelFile file, const TrainSettings& settings, int threads)
      : pool_(threads), state_{std::move(file), settings} {
    if (settings.solver != Solver::moment || !likelihood_of(state_.file.features.target.task).has_identity_link())
      throw std::invalid_argument(
          "model: only regression models of the moment solver have additive statistics; train with the solver moment");
    state_.restore(TrainOptions(), statistics_model_name, pool_);
    learner().start_worker_sums();
  }

  /// Computes the sums of the iteration over the rows of one worker.
  void accumulate(const DatasetView& rows, Statistics& statistics, const std::function<bool()>& interrupted) {
    DataOptions data;
    data.dataset = &rows;
    RowReader<Scalar> reader(state_.file.features, {.data = data,
                                                    .columns = {},
                                                    .unknown = TableEncoder::UnknownFeatures::ignore,
                                                    .interrupted = interrupted,
                                                    .reads_ahead = false});
    Target seen = state_.file.features.target;
    seen.min_seen = Target().min_seen;
    seen.max_seen = Target().max_seen;
    RowBlock<Scalar> block;
    while (reader.next(block) == RowReader<Scalar>::Next::block) {
      learner().accumulate(block.view());
      for (const Scalar y : block.targets) seen.update_bounds(seen.unscale(static_cast<double>(y)));
    }
    Archive archive;
    learner().archive_worker_sums(archive);
    statistics.sums = archive.take();
    statistics.min_target = seen.min_seen;
    statistics.max_target = seen.max_seen;
  }

  /// Completes the iteration with the sums over the rows of all workers.
  StatisticsUpdate apply(const Statistics& all) {
    Archive archive(all.sums);
    StatisticsUpdate result;
    try {
      learner().archive_worker_sums(archive);
    } catch (const std::runtime_error& error) {
      throw DataError(statistics_name, 0, 0, error.what());
    }
    Target& target = state_.file.features.target;
    target.update_bounds(all.min_target);
    target.update_bounds(all.max_target);
    state_.file.features.clear_values();
    state_.settings.rows = std::max(state_.settings.rows, all.rows());
    state_.save();
    result.model = state_.file.to_bytes();
    result.rmse = std::sqrt(all.sums.at("squares").front() / all.sums.at("weight").front()) * target.scaling.scale;
    result.is_line_search = learner().is_line_search();
    result.steps_tried = learner().steps_tried();
    result.steps_taken = learner().steps_taken();
    return result;
  }

 private:
  MomentLearner<Scalar>& learner() { return *state_.solver->moments(); }

  ThreadPool pool_;
  TrainState<Scalar> state_;  ///< its solver uses the pool
};

/// Calls use(iteration) with the scalar type of the model.
template <typename Use>
void with_iteration(const std::string& model, int threads, Use&& use) {
  ModelFile file = ModelFile::from_bytes(model, statistics_model_name);
  const TrainSettings settings = TrainSettings::load(file, statistics_model_name);
  if (settings.precision == Precision::single_precision) {
    MomentIteration<float> iteration(std::move(file), settings, threads);
    use(iteration);
  } else {
    MomentIteration<double> iteration(std::move(file), settings, threads);
    use(iteration);
  }
}

}  // namespace

Index Statistics::rows() const {
  const auto found = sums.find("rows");
  return found == sums.end() || found->second.empty() ? 0 : static_cast<Index>(found->second.front());
}

std::string Statistics::to_bytes() const {
  Message message{"statistics", model, sums};
  message.arrays[target_bounds_name] = {min_target, max_target};
  return message.to_bytes();
}

Statistics Statistics::from_bytes(const std::string& bytes) {
  Message message = Message::from_bytes(bytes, "statistics", statistics_name);
  const auto seen = message.arrays.find(target_bounds_name);
  if (seen == message.arrays.end() || seen->second.size() != 2)
    throw DataError(statistics_name, 0, 0, "expected bytes of Statistics::to_bytes()");
  Statistics result;
  result.model = message.subject;
  result.min_target = seen->second[0];
  result.max_target = seen->second[1];
  message.arrays.erase(seen);
  result.sums = std::move(message.arrays);
  return result;
}

Statistics& Statistics::operator+=(const Statistics& other) {
  const auto is_alike = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.size() == b.second.size();
  };
  if (model != other.model || !std::equal(sums.begin(), sums.end(), other.sums.begin(), other.sums.end(), is_alike))
    throw std::invalid_argument(
        "statistics of different models or requests cannot be added; compute all of them for the same one");
  auto addend = other.sums.begin();
  for (auto& [name, values] : sums) {
    std::transform(values.begin(), values.end(), addend->second.begin(), values.begin(), std::plus<>());
    ++addend;
  }
  min_target = std::min(min_target, other.min_target);
  max_target = std::max(max_target, other.max_target);
  return *this;
}

Statistics partial_statistics(const std::string& model, const DatasetView& rows, int threads,
                              const std::function<bool()>& interrupted) {
  Statistics statistics;
  statistics.model = fingerprint(model);
  with_iteration(model, threads, [&](auto& iteration) { iteration.accumulate(rows, statistics, interrupted); });
  return statistics;
}

StatisticsUpdate apply_statistics(const std::string& model, const Statistics& all) {
  if (all.model != fingerprint(model))
    throw std::invalid_argument(
        "all: the statistics belong to another model, for example the one of the previous iteration; compute them "
        "again");
  if (!(all.rows() > 0) || !all.sums.contains("weight") || !(all.sums.at("weight").front() > 0))
    throw std::invalid_argument("all: the statistics contain no rows with a positive weight");
  StatisticsUpdate result;
  with_iteration(model, 1, [&](auto& iteration) { result = iteration.apply(all); });
  return result;
}

}  // namespace dyad
