#pragma once

#include <map>
#include <string>
#include <vector>

#include <dyad/data.h>
#include <dyad/model.h>

#include "encoding/feature_map.h"

namespace dyad {

/// Everything that a model file holds. The layout is safetensors, so that the arrays can be read without us.
struct ModelFile {
  Model<double> model{0, 0};  ///< predicts the scaled target or, for classes, the log-odds of the positive one
  FeatureMap features;
  Precision precision = Precision::double_precision;  ///< of the model's arrays
  std::map<std::string, std::string> training;        ///< options, rows seen: text for the solver and for people
  std::map<std::string, std::vector<double>> state;   ///< what training needs to go on; empty: it cannot
  std::string checksum;                               ///< of the file that was read; empty: it has none (version 1)
  std::string warning;                                ///< of reading, for the user; empty: none
  /// Free-form text of the program that saved the model, stored as metadata `annotation.*`. Training and prediction
  /// ignore it; resumed training keeps it.
  std::map<std::string, std::string> annotations;

  [[nodiscard]] std::string to_bytes() const;

  /// Verifies the checksum. Throws DataError, naming `file`, for what is no model, is damaged, or comes from a newer
  /// version.
  static ModelFile from_bytes(const std::string& bytes, const std::string& file);

  /// The old file, if any, stays as it is unless the new one is complete.
  void save(const std::string& path) const;
  static ModelFile load(const std::string& path);

  /// Reads a whole file of at most the size of physical memory. Throws DataError if `path` is not a readable regular
  /// file.
  static std::string read_bytes(const std::string& path);
};

}  // namespace dyad
