#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rows/block.h"
#include "source/lines.h"

namespace dyad {

/// Appends the rows of libsvm text, `target index:value index:value ...`, to the block, with indices as they stand in
/// the file. Text behind a # is a comment; empty lines are skipped. Throws DataError with the line and column of what
/// is wrong: text where a number belongs, NaN or infinity, indices that are negative, fall, repeat or pass 2^31.
void parse_libsvm(const LineBlock& lines, const std::string& path, SparseBlock<double>& block);

}  // namespace dyad
