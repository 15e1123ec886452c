#include <dyad/statistics.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <dyad/data_error.h>

#include "distributed/message.h"
#include "encoding/sources/row_reader.h"
#include "training/state/train_state.h"

namespace dyad {
namespace {

const char* const file_name = "the model";
const char* const statistics_name = "the statistics";
const char* const targets_seen = "targets_seen";

/// Training with the moment solver between two rounds of statistics. Not thread-safe.
template <typename Scalar>
class MomentRounds {
 public:
  MomentRounds(ModelFile file, const TrainSettings& settings, int threads)
      : pool_(threads), state_{std::move(file), settings} {
    if (settings.solver != Solver::moment || !likelihood_of(state_.file.features.target.task).has_identity_link())
      throw std::invalid_argument("only models of the moment solver that predict numbers have statistics that add");
    state_.restore(TrainOptions(), file_name, pool_);
    learner().start_part();
  }

  void gather(const MemoryRows& rows, Statistics& statistics, const std::function<bool()>& interrupted) {
    DataOptions data;
    data.memory = &rows;
    RowReader<Scalar> reader(state_.file.features, {.data = data,
                                                    .columns = {},
                                                    .unknown = TableEncoder::Unknown::is_left_out,
                                                    .interrupted = interrupted,
                                                    .reads_ahead = false});
    Target seen = state_.file.features.target;
    seen.least_seen = Target().least_seen;
    seen.most_seen = Target().most_seen;
    RowBlock<Scalar> block;
    while (reader.next(block) == RowReader<Scalar>::Next::block) {
      learner().gather(block.view());
      for (const Scalar y : block.targets) seen.see(seen.in_units(static_cast<double>(y)));
    }
    Archive gathered;
    learner().archive_part(gathered);
    statistics.sums = gathered.take();
    statistics.least = seen.least_seen;
    statistics.most = seen.most_seen;
  }

  StatisticsApplied apply(const Statistics& all) {
    Archive gathered(all.sums);
    StatisticsApplied result;
    try {
      learner().archive_part(gathered);
    } catch (const std::runtime_error& error) {
      throw DataError(statistics_name, 0, 0, error.what());
    }
    Target& target = state_.file.features.target;
    target.see(all.least);
    target.see(all.most);
    state_.file.features.forget_values();
    state_.settings.rows = std::max(state_.settings.rows, all.rows());
    state_.save();
    result.model = state_.file.to_bytes();
    result.rmse = std::sqrt(all.sums.at("squares").front() / all.sums.at("weight").front()) * target.scaling.scale;
    result.is_trying = learner().is_trying();
    result.steps_tried = learner().steps_tried();
    result.steps_taken = learner().steps_taken();
    return result;
  }

 private:
  MomentLearner<Scalar>& learner() { return *state_.solver->moments(); }

  ThreadPool pool_;
  TrainState<Scalar> state_;  ///< its solver uses the pool
};

template <typename Use>
void with_rounds(const std::string& model, int threads, Use&& use) {
  ModelFile file = ModelFile::from_bytes(model, file_name);
  const TrainSettings settings = TrainSettings::saved(file, file_name);
  if (settings.precision == Precision::single_precision) {
    MomentRounds<float> rounds(std::move(file), settings, threads);
    use(rounds);
  } else {
    MomentRounds<double> rounds(std::move(file), settings, threads);
    use(rounds);
  }
}

}  // namespace

Index Statistics::rows() const {
  const auto found = sums.find("rows");
  return found == sums.end() || found->second.empty() ? 0 : static_cast<Index>(found->second.front());
}

std::string Statistics::to_bytes() const {
  Message message{"statistics", model, sums};
  message.arrays[targets_seen] = {least, most};
  return message.to_bytes();
}

Statistics Statistics::from_bytes(const std::string& bytes) {
  Message message = Message::from_bytes(bytes, "statistics", statistics_name);
  const auto seen = message.arrays.find(targets_seen);
  if (seen == message.arrays.end() || seen->second.size() != 2)
    throw DataError(statistics_name, 0, 0, "these are no statistics; expected what partial_statistics has made");
  Statistics result;
  result.model = message.about;
  result.least = seen->second[0];
  result.most = seen->second[1];
  message.arrays.erase(seen);
  result.sums = std::move(message.arrays);
  return result;
}

Statistics& Statistics::operator+=(const Statistics& other) {
  const auto is_alike = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.size() == b.second.size();
  };
  if (model != other.model || !std::equal(sums.begin(), sums.end(), other.sums.begin(), other.sums.end(), is_alike))
    throw std::invalid_argument("statistics of different models do not add; gather them for the same one");
  auto from = other.sums.begin();
  for (auto& [name, numbers] : sums) {
    std::transform(numbers.begin(), numbers.end(), from->second.begin(), numbers.begin(), std::plus<>());
    ++from;
  }
  least = std::min(least, other.least);
  most = std::max(most, other.most);
  return *this;
}

Statistics partial_statistics(const std::string& model, const MemoryRows& rows, int threads,
                              const std::function<bool()>& interrupted) {
  Statistics statistics;
  statistics.model = fingerprint(model);
  with_rounds(model, threads, [&](auto& rounds) { rounds.gather(rows, statistics, interrupted); });
  return statistics;
}

StatisticsApplied apply_statistics(const std::string& model, const Statistics& all) {
  if (all.model != fingerprint(model))
    throw std::invalid_argument("these statistics were gathered for another model, perhaps for the one before");
  if (!(all.rows() > 0) || !all.sums.contains("weight") || !(all.sums.at("weight").front() > 0))
    throw std::invalid_argument("there is no row in the statistics, expected rows to learn from");
  StatisticsApplied result;
  with_rounds(model, 1, [&](auto& rounds) { result = rounds.apply(all); });
  return result;
}

}  // namespace dyad
