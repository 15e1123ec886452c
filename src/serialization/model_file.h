#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/model.h>
#include <dyad/types.h>

#include "encoding/feature_map.h"
#include "model/anova_model.h"
#include "model/sampled_posterior.h"
#include "serialization/safetensors.h"

namespace dyad {

/// Content of a model file. The layout is safetensors, which many programs can read (docs/model-file.md).
struct ModelFile {
  Model<double> model{0, 0};                ///< predicts the scaled target, or the log-odds of the positive class
  std::optional<AnovaModel> anova;          ///< replaces `model`, which then has no features
  std::optional<SampledPosterior> sampled;  ///< posterior of `model`, if it is an average of samples
  FeatureMap features;                      ///< encoding of rows and targets
  Precision precision = Precision::double_precision;  ///< of the stored parameters
  std::map<std::string, std::string> training;        ///< options and row counts as text, stored as `training.*`
  std::map<std::string, std::vector<double>> state;   ///< solver state, stored as `state.*`; empty: cannot be resumed
  std::string checksum;                               ///< of the file that was read; empty: none (format version 1)
  std::string warning;  ///< message for the user about the file that was read; empty: none
  /// Free-form text of the program that saved the model, stored as `annotation.*`. Training and prediction ignore it;
  /// resumed training preserves it.
  std::map<std::string, std::string> annotations;

  /// Writes the predictions of encoded rows: scaled targets, or log-odds of the positive class.
  void predict(const Rows<double>& rows, std::span<double> predictions) const;

  /// Calls sink() with consecutive parts of the file. Does not copy the state and parameters in double precision.
  void write(const std::function<void(std::string_view)>& sink) const { content().write(sink); }
  [[nodiscard]] std::string to_bytes() const { return content().to_bytes(); }

  /// Verifies the checksum. Throws DataError that names `file` if the bytes are not a model file, are damaged, or have
  /// a newer format version.
  static ModelFile from_bytes(const std::string& bytes, const std::string& file);

  /// Atomic: an existing file is replaced only after the new one has been written completely.
  void save(const std::string& path) const;
  static ModelFile load(const std::string& path);

  /// Reads a whole file. Throws DataError if `path` is not a readable regular file, or if the file is larger than the
  /// memory that the process may use.
  static std::string read_bytes(const std::string& path);

 private:
  /// Metadata with the checksum, and tensors. Refers to `model` and `state`.
  [[nodiscard]] Safetensors content() const;
};

}  // namespace dyad
