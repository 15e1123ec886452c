#pragma once

#include <functional>
#include <string>

#include "data/prior_groups.h"

namespace dyad {

/// Reads the prior groups of libsvm indices: one name or number per line, line j for the j-th index, without spaces
/// around it. `stop` as in Input. Throws DataError for an empty line and for an empty file.
PriorGroups read_group_file(const std::string& path, const std::function<bool()>& stop = {});

}  // namespace dyad
