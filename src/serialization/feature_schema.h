#pragma once

#include <string>

#include "encoding/feature_map.h"
#include "serialization/model_reader.h"
#include "serialization/safetensors.h"

namespace dyad {

/// Adds a FeatureMap to a model file: the metadata entry `features`, a JSON object with the columns, their scaling and
/// the target, and tensors with the categories and the properties of single features (docs/model-file.md).
void add_feature_schema(const FeatureMap& map, Safetensors& file);

/// Reads what add_feature_schema() wrote. Throws DataError if it is inconsistent.
void read_feature_schema(const ModelReader& reader, FeatureMap& map);

}  // namespace dyad
