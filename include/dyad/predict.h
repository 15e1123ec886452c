#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dyad/data.h>
#include <dyad/metrics.h>
#include <dyad/recover.h>

namespace dyad {

struct PredictOptions {
  DataOptions data;
  std::string model_path;
  std::string output_path = "-";  ///< "-": standard output
  bool deviations = false;        ///< add the standard deviation of the target, noise included; of the probability
  bool labels = false;            ///< classes: the label, escaped by escape_text(), instead of the probability
  int threads = 0;                ///< 0: all cores

  void validate() const;
};

struct PredictSummary {
  Outcome outcome = Outcome::budget;  ///< budget: all rows are done
  Index rows = 0;
  Index unknown_cells = 0;  ///< categories and indices that the model has never seen; they count as nothing
  double seconds = 0;
  std::int64_t peak_rss_bytes = 0;  ///< of the process; 0 from Predictor, which does not measure it
  Task task = Task::regression;
  std::string positive;  ///< classes: whose probability was written
  std::vector<std::string> warnings;
};

struct EvaluateSummary : PredictSummary {
  std::optional<Metrics> metrics;  ///< of all rows; empty if the run was interrupted
};

struct PredictHooks {
  std::function<bool()> interrupted;  ///< polled between blocks and while waiting for data; true ends the run
};

/// Writes one line for each row, in order. A file appears under its name only when it is complete.
PredictSummary predict(const PredictOptions& options, const PredictHooks& hooks = {});

/// Measures the model on rows with targets.
EvaluateSummary evaluate(const PredictOptions& options, const PredictHooks& hooks = {});

}  // namespace dyad
