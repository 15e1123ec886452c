#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace dyad::trials {

/// Expected outcome of training on a stream.
enum class Expected {
  learned,        ///< by at least one solver; the others may reject the stream
  rejected,       ///< by all solvers, as invalid data
  out_of_memory,  ///< all solvers report that the model does not fit into memory
};

/// Adversarial training data: malformed or extreme input, accidental or malicious.
struct HostileStream {
  std::string name;
  std::string format;                                    ///< libsvm, or csv with the target in column y
  std::vector<std::string> options{};                    ///< of `train`
  std::function<void(std::ostream&, int rows)> write{};  ///< writes the rows
  int rows = 3000;
  std::vector<std::string> solvers{};  ///< names of solver options (hostile.cpp) to run; empty: all
  Expected expected = Expected::learned;
};

std::vector<HostileStream> hostile_streams();

}  // namespace dyad::trials
