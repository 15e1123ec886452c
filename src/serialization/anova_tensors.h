#pragma once

#include "model/anova_model.h"
#include "serialization/model_reader.h"

namespace dyad {

/// Adds an AnovaModel to a file as tensors `anova.*` (docs/model-file.md). The posterior covariance is stored in single
/// precision.
void add_anova_model(const AnovaModel& model, Safetensors& file);

/// True if the file contains an AnovaModel.
bool has_anova_model(const ModelReader& reader);

/// Reads an AnovaModel for rows of `columns` columns. Throws DataError if tensors are missing or contradict each other.
AnovaModel read_anova_model(const ModelReader& reader, Index columns);

}  // namespace dyad
