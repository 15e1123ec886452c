#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/row_block.h"
#include "io/line_reader.h"

namespace dyad {

/// Parses rows of libsvm text, `target index:value index:value ...`, from the front of `lines` and appends them to
/// `block` until the limits are reached or `lines` is empty. Indices are not shifted: index 1 is column 1. Text after a
/// # is a comment; empty lines are skipped. Throws DataError with line and column for text that is not a number, for
/// NaN, infinity and values above `max_abs_value`, and for indices that are negative, not increasing, or
/// above 2^31 - 2.
void parse_libsvm(LineBlock& lines, const std::string& path, const BlockLimits& limits, RowBlock<double>& block);

}  // namespace dyad
