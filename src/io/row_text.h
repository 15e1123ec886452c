#pragma once

#include <string>
#include <vector>

#include <dyad/simulate.h>

#include "data/row_block.h"

namespace dyad {

// Text and bytes of generated rows in the formats csv, tsv, libsvm and npy. A planted problem is simulated data with
// known parameters (dyad/simulate.h).

/// Name of the target column of generated tables.
inline constexpr const char* planted_target_name = "y";

/// Names of the feature columns: x1, x2, ..., or left.1, ..., right.1, ... for bilinear problems.
std::vector<std::string> planted_feature_names(const PlantedOptions& problem);

/// The bytes before the first row: the column names (csv, tsv), the array header (npy), or nothing (libsvm).
std::string make_header(const PlantedOptions& problem, Format format, Index rows);

/// Header of an npy file (version 1) with little-endian doubles. `columns` = 0: an array of one dimension.
std::string make_npy_header(Index rows, Index columns);

/// Appends the rows [first, first + count) of the block to `text`. Numbers have the fewest digits that parse to the
/// same double. npy: the features without the targets.
void append_rows(Format format, const DenseBlock<double>& block, Index first, Index count, std::string& text);

}  // namespace dyad
