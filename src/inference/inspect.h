#pragma once

#include <dyad/inspect.h>

#include "serialization/model_file.h"

namespace dyad {

Inspection inspect(const ModelFile& file, Index top);

}  // namespace dyad
