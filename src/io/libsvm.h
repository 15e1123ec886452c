#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/row_block.h"
#include "io/line_reader.h"

namespace dyad {

/// Moves rows of libsvm text, `target index:value index:value ...`, from the front of `lines` to the block until it is
/// full or there are no more, with indices as they stand in the file. Text behind a # is a comment; empty lines are
/// skipped. Throws DataError with the line and column of what is wrong: text where a number belongs, NaN or infinity,
/// indices that are negative, fall, repeat or pass 2^31.
void parse_libsvm(LineBlock& lines, const std::string& path, const BlockLimits& limits, RowBlock<double>& block);

}  // namespace dyad
