#pragma once

#include <atomic>
#include <string>
#include <utility>

namespace dyad {

/// A file to read, or "-" for standard input, and a flag that ends the reading while it waits for more.
struct Input {
  Input(std::string file, const std::atomic<bool>* stop_flag = nullptr)  // NOLINT(google-explicit-constructor)
      : path(std::move(file)), stop(stop_flag) {}
  Input(const char* file) : path(file) {}  // NOLINT(google-explicit-constructor)

  std::string path;
  const std::atomic<bool>* stop = nullptr;
};

/// Thrown by a read once its flag is set.
struct ReadingStopped {};

}  // namespace dyad
