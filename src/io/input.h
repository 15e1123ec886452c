#pragma once

#include <functional>
#include <string>
#include <utility>

#include <dyad/dataset.h>
#include <dyad/types.h>

namespace dyad {

/// A file to read, with the limits and the stop request that apply to it. Converts implicitly from a path.
struct Input {
  Input(std::string file, std::function<bool()> stop_request = {},  // NOLINT(google-explicit-constructor)
        const ReadLimits& read_limits = {})
      : path(std::move(file)), stop(std::move(stop_request)), limits(read_limits) {}
  Input(const char* file) : path(file) {}  // NOLINT(google-explicit-constructor)

  std::string path;            ///< "-": standard input
  std::function<bool()> stop;  ///< polled while reading; true ends the read with ReadingStopped. Empty: no stop request
  ReadLimits limits;           ///< maximum line length and number of columns
};

/// Thrown by a read whose `stop` returned true.
struct ReadingStopped {};

}  // namespace dyad
