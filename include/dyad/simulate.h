#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <dyad/planted.h>
#include <dyad/recover.h>

namespace dyad {

/// Writes the rows of a planted problem to a file.
struct SimulateOptions {
  PlantedOptions problem;
  Index rows = 0;
  std::string path;  ///< "-": standard output
  Format format = Format::libsvm;
  std::string target_path;  ///< npy: where the targets go, one array of their own
  std::string truth_path;   ///< a model file with the planted model; empty: not written
  int threads = 0;          ///< 0: all cores; the bytes are the same for any number

  void validate() const;
};

struct SimulateSummary {
  Outcome outcome = Outcome::budget;  ///< budget: all rows are written
  Index rows = 0;
  std::int64_t bytes = 0;
  double seconds = 0;
  std::int64_t peak_rss_bytes = 0;
};

struct SimulateHooks {
  std::function<void(const SimulateSummary&)> progress;  ///< after every block
  std::function<bool()> interrupted;                     ///< asked between blocks; true ends the run
};

/// A file appears under its name only when it is complete. Throws std::runtime_error where it cannot be written.
SimulateSummary simulate(const SimulateOptions& options, const SimulateHooks& hooks = {});

}  // namespace dyad
