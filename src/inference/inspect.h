#pragma once

#include <vector>

#include <dyad/inspect.h>

#include "linalg/matrix.h"
#include "serialization/model_file.h"

namespace dyad {

/// Linear part of a low-rank model in the units of the data.
struct LinearTerms {
  double intercept = 0;           ///< prediction of a row of zeros (classes: the log-odds)
  Vector<double> coefficients{};  ///< by feature, as Term::coefficient
  Vector<double> effects{};       ///< by feature, as Term::effect
  Vector<double> scales{};        ///< by feature, in units of the data
  /// Group of each feature whose square is a linear function of the feature and is part of the linear terms; -1 for the
  /// others. At most one feature of a group differs from 0 in a row.
  std::vector<Index> groups{};
};
[[nodiscard]] LinearTerms linear_terms(const ModelFile& file);

/// Terms of a model in the units of the data. The variant of dyad::inspect() for a model that is not in a file.
Inspection inspect(const ModelFile& file, Index top);

}  // namespace dyad
