#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

using NumberPointer = std::variant<const double*, const float*>;
using IntegerPointer = std::variant<const std::int64_t*, const std::int32_t*>;

/// What an npy file holds: columns without names, every one a number.
struct MemoryMatrix {
  Index columns = 0;
  NumberPointer values;
  Index row_stride = 0;     ///< from a row to the next, in numbers
  Index column_stride = 1;  ///< from a column to the next
};

/// What libsvm text holds: compressed rows, whose indices rise along a row.
struct MemorySparse {
  Index columns = 0;  ///< indices lie below
  IntegerPointer offsets;
  IntegerPointer indices;
  NumberPointer values;
};

/// What a column of a csv file holds: numbers (NaN: missing), or categories by their place in the list (negative:
/// missing).
struct MemoryColumn {
  std::string name{};
  bool is_category = false;
  NumberPointer numbers{};
  Index stride = 1;  ///< from a number to the next
  const std::int32_t* codes = nullptr;
  std::vector<std::string> categories{};
};

/// Rows in memory, which the caller owns. They are trained on and predicted like those of a file: a model does not know
/// the difference. Rows of weight 0 are passed over.
struct MemoryRows {
  Index count = 0;
  std::variant<MemoryMatrix, MemorySparse, std::vector<MemoryColumn>> features;
  std::span<const double> targets;  ///< one for each row, or none; classes: 0 or 1
  std::span<const double> weights;  ///< one for each row, or none: all count once
  std::vector<std::string> labels;  ///< of the classes 0 and 1; none: targets are numbers
};

}  // namespace dyad
