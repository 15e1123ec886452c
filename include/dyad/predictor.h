#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dyad/inspect.h>
#include <dyad/memory.h>
#include <dyad/model.h>
#include <dyad/planted.h>
#include <dyad/predict.h>

namespace dyad {

/// A trained model to embed: rows in memory in, predictions out, as often and from as many threads as you like.
class Predictor {
 public:
  /// Throws DataError for what is no model.
  static Predictor load(const std::string& path);
  /// `file`: the name of the model in error messages.
  static Predictor from_bytes(const std::string& bytes, const std::string& file = "the model");
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  /// One number for each row: the target, or the probability of the positive class. `deviations`, unless empty: its
  /// standard deviation, noise included; classes: that of the probability. `threads`: 0 for all cores. Rows in memory
  /// may have another layout than those of training: see Layout.
  PredictSummary predict(const MemoryRows& rows, std::span<double> values, std::span<double> deviations = {},
                         int threads = 0, const PredictHooks& hooks = {}) const;

  [[nodiscard]] Inspection inspect(Index top) const;

  /// The parameters, for scaled features and the scaled target (classes: the log-odds).
  [[nodiscard]] const Model<double>& model() const;
  [[nodiscard]] std::vector<std::string> feature_names() const;
  [[nodiscard]] Layout layout() const;  ///< of the training rows
  [[nodiscard]] Kind kind() const;
  /// Names of the columns that rows must have; sparse rows: as many as there are features.
  [[nodiscard]] std::vector<std::string> column_names() const;
  /// Names of the columns whose values are categories, in the order of `column_names()`.
  [[nodiscard]] std::vector<std::string> categorical_columns() const;
  [[nodiscard]] Task task() const;
  /// What a user should know about the model file, such as that it has no checksum; empty: nothing.
  [[nodiscard]] std::string warning() const;
  [[nodiscard]] std::vector<std::string> labels() const;  ///< classes: the negative one, the positive one

 private:
  struct Implementation;
  explicit Predictor(std::unique_ptr<Implementation> own);
  std::unique_ptr<Implementation> own_;
};

}  // namespace dyad
