#pragma once

#include <functional>
#include <string>
#include <utility>

#include <dyad/data.h>

namespace dyad {

/// A file to read, or "-" for standard input.
struct Input {
  Input(std::string file, std::function<bool()> stop_request = {},  // NOLINT(google-explicit-constructor)
        const ReadLimits& read_limits = {})
      : path(std::move(file)), stop(std::move(stop_request)), limits(read_limits) {}
  Input(const char* file) : path(file) {}  // NOLINT(google-explicit-constructor)

  std::string path;
  std::function<bool()> stop;  ///< polled while reading; true ends the read with ReadingStopped. Empty: never
  ReadLimits limits;
};

/// Thrown by a read whose `stop` returned true.
struct ReadingStopped {};

}  // namespace dyad
