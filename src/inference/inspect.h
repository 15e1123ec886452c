#pragma once

#include <dyad/inspect.h>

#include "serialization/model_file.h"

namespace dyad {

/// Terms of a model in the units of the data. The variant of dyad::inspect() for a model that is not in a file.
Inspection inspect(const ModelFile& file, Index top);

}  // namespace dyad
