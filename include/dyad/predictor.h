#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/evaluate.h>
#include <dyad/explanation.h>
#include <dyad/inspect.h>
#include <dyad/model.h>

namespace dyad {

/// Trained model in memory. All member functions are const and thread-safe.
///
///     const auto predictor = dyad::Predictor::load("model.dyad");
///     std::vector<double> values(rows.count);
///     predictor.predict(rows, values);  // dyad::DatasetView
class Predictor {
 public:
  /// Reads a model file.
  /// \throws DataError if the file is not a model, std::runtime_error if it cannot be read
  static Predictor load(const std::string& path);
  /// Reads a model from the bytes of its file.
  /// \param bytes  content of a model file
  /// \param file   name of the model in error messages
  /// \throws DataError if the bytes are not a model
  static Predictor from_bytes(const std::string& bytes, const std::string& file = "the model");
  ~Predictor();
  Predictor(Predictor&&) noexcept;             ///< moves the predictor
  Predictor& operator=(Predictor&&) noexcept;  ///< moves the predictor

  /// Predicts rows in memory, in O(rank) per non-zero. The layout of the rows may differ from the layout of the
  /// training rows: see Layout.
  ///
  /// \param rows        rows; targets are ignored
  /// \param values      receives one number per row: the target, or the probability of the positive class
  /// \param deviations  unless empty, receives the standard deviation of the target including noise; classes: of the
  ///                    probability
  /// \param threads     0: all cores
  /// \param hooks       callbacks
  /// \throws DataError for invalid rows, std::invalid_argument if sizes disagree
  PredictSummary predict(const DatasetView& rows, std::span<double> values, std::span<double> deviations = {},
                         int threads = 0, const PredictHooks& hooks = {}) const;

  /// As predict() of a classification model, but writes the log-odds of the positive class.
  /// \throws std::invalid_argument for regression models, and as predict()
  PredictSummary predict_log_odds(const DatasetView& rows, std::span<double> values, int threads = 0,
                                  const PredictHooks& hooks = {}) const;

  /// Returns the terms of the predictions: those of each column and pair of columns. Low-rank models take O(rank) per
  /// pair of non-zeros of a row.
  /// \throws DataError for invalid rows
  [[nodiscard]] Explanation explain(const DatasetView& rows, int threads = 0, const PredictHooks& hooks = {}) const;

  /// As dyad::inspect().
  [[nodiscard]] Inspection inspect(Index top) const;

  /// True for ANOVA models, which have functions of columns and pairs instead of weights and factors.
  [[nodiscard]] bool is_anova() const;
  /// The parameters, for scaled features and the scaled target (classes: the log-odds).
  /// \throws std::invalid_argument for ANOVA models; see inspect()
  [[nodiscard]] const Model<double>& model() const;
  /// Names of the features in the order of the parameters.
  [[nodiscard]] std::vector<std::string> feature_names() const;
  /// Layout of the training rows.
  [[nodiscard]] Layout layout() const;
  /// Kind of the model.
  [[nodiscard]] Kind kind() const;
  /// Names of the required columns; sparse rows: one per feature.
  [[nodiscard]] std::vector<std::string> column_names() const;
  /// Names of the categorical columns, in the order of column_names().
  [[nodiscard]] std::vector<std::string> categorical_columns() const;
  /// Type of the target.
  [[nodiscard]] Task task() const;
  /// Warning about the model file for the user, such as a missing checksum; empty: none.
  [[nodiscard]] std::string warning() const;
  /// Classes: labels of the negative and the positive class.
  [[nodiscard]] std::vector<std::string> labels() const;

 private:
  struct Implementation;
  explicit Predictor(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dyad
