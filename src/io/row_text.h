#pragma once

#include <string>
#include <vector>

#include <dyad/planted.h>

#include "data/row_block.h"

namespace dyad {

inline constexpr const char* planted_target = "y";
std::vector<std::string> feature_names(const PlantedOptions& problem);

/// What stands before the first row: the names of the columns, or the header of an array.
std::string header(const PlantedOptions& problem, Format format, Index rows);
std::string npy_header(Index rows, Index columns);

/// Appends the rows [first, first + count) of the block. Numbers are the shortest that read back the same. npy: the
/// features alone.
void append_rows(Format format, const DenseBlock<double>& block, Index first, Index count, std::string& text);

}  // namespace dyad
