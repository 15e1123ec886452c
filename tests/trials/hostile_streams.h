#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace dyad::trials {

enum class Fate {
  learned,    ///< by one solver at least
  refused,    ///< by all of them, as bad data
  too_large,  ///< for the memory of any machine, and all of them say so
};

/// Malformed and extreme input, accidental or malicious.
struct HostileStream {
  std::string name;
  std::string format;                  ///< libsvm or csv, with the target in y
  std::vector<std::string> options{};  ///< of train
  std::function<void(std::ostream&, int rows)> write{};
  int rows = 3000;
  std::vector<std::string> ways{};  ///< to learn it; empty: all that there are
  Fate fate = Fate::learned;
};

std::vector<HostileStream> hostile_streams();

}  // namespace dyad::trials
