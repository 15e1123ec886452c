#pragma once

#include <dyad/inspect.h>

#include "model/model_file.h"

namespace dyad {

Inspection inspect(const ModelFile& file, Index top);

}  // namespace dyad
