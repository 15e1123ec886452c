#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include <dyad/dataset.h>
#include <dyad/types.h>

namespace dyad {

/// A file to read, with the limits and the stop request that apply to it. Converts implicitly from a path.
struct Input {
  Input(std::string file, std::function<bool()> stop_request = {},  // NOLINT(google-explicit-constructor)
        const ReadLimits& read_limits = {}, std::size_t first_block_bytes = default_block_bytes)
      : path(std::move(file)), stop(std::move(stop_request)), limits(read_limits), block_bytes(first_block_bytes) {}
  Input(const char* file) : path(file) {}  // NOLINT(google-explicit-constructor)

  std::string path;            ///< "-": standard input
  std::function<bool()> stop;  ///< polled while reading; true ends the read with ReadingStopped. Empty: no stop request
  ReadLimits limits;           ///< maximum line length and number of columns
  /// Size of the blocks of lines that LineReader reads, unless a line is longer.
  std::size_t block_bytes = default_block_bytes;

  static constexpr std::size_t default_block_bytes = std::size_t{1} << 18;  ///< sensitivity: docs/constants.md
};

/// Thrown by a read whose `stop` returned true.
struct ReadingStopped {};

}  // namespace dyad
