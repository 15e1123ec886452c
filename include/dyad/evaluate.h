#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dyad/dataset.h>

/// \file
/// Prediction from files to files, and evaluation on rows with targets.

namespace dyad {

/// Quality of the predictions of one of several classes. A row counts as predicted to be of the class with the largest
/// probability.
struct ClassMetrics {
  std::string label;  ///< of the class
  double weight = 0;  ///< sum of the weights of its rows
  double auc = 0;     ///< of its probability, against all other classes; as Metrics::auc
  double precision =
      0;              ///< share of its rows among the rows that are predicted to be of the class; 0 if there are none
  double recall = 0;  ///< share of its rows that are predicted to be of the class; 0 if it has no rows
};

/// Quality of predictions, in the units of the target. A metric of the other task, or one that was not measured, is
/// NaN.
struct Metrics {
  Task task = Task::regression;  ///< decides which metrics are measured
  double weight = 0;             ///< sum of the row weights; without weights: number of rows

  double rmse = 0;  ///< root mean squared error
  double mae = 0;   ///< mean absolute error
  double r2 = 0;    ///< 1 - mean squared error / variance; 0 if the target is constant

  double logloss = 0;   ///< mean negative log-likelihood, in nats
  double auc = 0;       ///< area under the ROC curve from a histogram, accurate to 0.001; 0.5 if there is one class.
                        ///< More than two classes: mean over the classes with rows, each against the others
  double accuracy = 0;  ///< share of the rows whose most probable class is the true class
  std::vector<ClassMetrics> classes{};  ///< more than two classes: one entry for each; empty otherwise

  double constant_loss = 0;  ///< value of `loss` for the best constant prediction on the same rows
  double loss = 0;           ///< rmse for regression, logloss for classification
};

/// Returns the name of Metrics::loss: "rmse" or "logloss".
const char* loss_name(Task task);

/// Options of predict() and evaluate().
struct PredictOptions {
  DataOptions data;               ///< rows to predict
  std::string model_path;         ///< model file
  std::string output_path = "-";  ///< file of the predictions; "-": standard output. evaluate() ignores it.
  bool deviations = false;  ///< add the standard deviation of the target including noise; classes: of the probability
  bool labels = false;      ///< classes: write the label, escaped by escape_text(), instead of the probability;
                            ///< deviations are then those of the probability of the label (more than two classes)
  int threads = 0;          ///< 0: all cores

  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

/// Result of predict().
struct PredictSummary {
  Outcome outcome = Outcome::budget;  ///< budget: all rows were processed
  Index rows = 0;                     ///< number of rows processed
  Index unknown_cells = 0;            ///< categories and indices that the model does not contain; their terms are 0
  double seconds = 0;                 ///< elapsed time
  std::int64_t peak_rss_bytes = 0;    ///< peak resident set of the process; 0 from Predictor, which does not measure it
  Task task = Task::regression;       ///< of the model
  std::string positive;               ///< two classes: label whose probability was written
  std::vector<std::string> classes;   ///< more than two classes: labels in the order of the probabilities of a line
  std::vector<std::string> warnings;  ///< for the user
};

/// Result of evaluate().
struct EvaluateSummary : PredictSummary {
  std::optional<Metrics> metrics;  ///< of all rows; empty if the run was interrupted
};

/// Callbacks of predict() and evaluate().
struct PredictHooks {
  std::function<bool()> interrupted;  ///< polled between blocks and while waiting for data; true ends the run
};

/// Writes the prediction of each row as one line, in the order of the rows, in constant memory. A line of a model of
/// more than two classes contains their probabilities, and then their standard deviations if requested. The output file
/// appears under its name only when it is complete.
///
/// \throws std::invalid_argument for invalid options, DataError for invalid rows or an invalid model file,
///         std::runtime_error if a file cannot be read or written
PredictSummary predict(const PredictOptions& options, const PredictHooks& hooks = {});

/// Computes the metrics of the predictions for rows with targets, in constant memory.
/// \throws std::invalid_argument for invalid options, DataError for invalid rows or an invalid model file,
///         std::runtime_error if a file cannot be read
EvaluateSummary evaluate(const PredictOptions& options, const PredictHooks& hooks = {});

}  // namespace dyad
