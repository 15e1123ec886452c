#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/evaluate.h>
#include <dyad/predictor.h>

namespace dyad {

/// Trained model of more than two classes in memory. All member functions are const and thread-safe.
///
///     const auto predictor = dyad::ClassPredictor::load("species.dyad");
///     std::vector<double> probabilities(rows.count * predictor.labels().size());
///     predictor.predict(rows, probabilities);  // dyad::DatasetView
class ClassPredictor {
 public:
  /// Reads a model file.
  /// \throws DataError if the file is not a model of more than two classes, std::runtime_error if it cannot be read
  static ClassPredictor load(const std::string& path);
  /// Reads a model from the bytes of its file.
  /// \param bytes  content of a model file
  /// \param file   name of the model in error messages
  /// \throws DataError if the bytes are not a model of more than two classes
  static ClassPredictor from_bytes(const std::string& bytes, const std::string& file = "the model");
  ~ClassPredictor();
  ClassPredictor(ClassPredictor&&) noexcept;             ///< moves the predictor
  ClassPredictor& operator=(ClassPredictor&&) noexcept;  ///< moves the predictor

  /// Predicts rows in memory.
  ///
  /// \param rows           rows; targets are ignored
  /// \param probabilities  receives one number per row and class, row-major; the numbers of a row add up to 1
  /// \param deviations     unless empty, receives the standard deviations of the probabilities. The log-odds of the
  ///                       classes are treated as independent.
  /// \param threads        0: all cores
  /// \param hooks          callbacks
  /// \throws DataError for invalid rows, std::invalid_argument if sizes disagree or if the model has no variances
  PredictSummary predict(const DatasetView& rows, std::span<double> probabilities, std::span<double> deviations = {},
                         int threads = 0, const PredictHooks& hooks = {}) const;

  /// As predict(), but writes the logarithms of the probabilities up to a constant per row: the log-odds of each class
  /// against the others times temperature().
  PredictSummary predict_scores(const DatasetView& rows, std::span<double> scores, int threads = 0,
                                const PredictHooks& hooks = {}) const;

  /// Labels of the classes, in the order of the probabilities.
  [[nodiscard]] const std::vector<std::string>& labels() const;
  /// Type of the labels: "integer" or "number" if all labels are numbers, else "text".
  [[nodiscard]] std::string label_type() const;
  /// Factor on the log-odds of the classes before the softmax.
  [[nodiscard]] double temperature() const;
  /// Model of a class against the others.
  /// \throws std::out_of_range if there is no class with this index
  [[nodiscard]] Predictor class_model(std::size_t index) const;

 private:
  struct Implementation;
  explicit ClassPredictor(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dyad
