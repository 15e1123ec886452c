#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <dyad/memory.h>

namespace dyad {

/// What a part of the rows says about a model of the moment solver: numbers that add over parts, wherever these lie.
/// One round: every part gathers its own, they are added, and the sum makes the next model. The rounds give what they
/// would give with all rows in one place.
class Statistics {
 public:
  [[nodiscard]] Index rows() const;
  [[nodiscard]] std::string to_bytes() const;
  /// Throws DataError for what are none.
  static Statistics from_bytes(const std::string& bytes);

  /// Throws std::invalid_argument where they were gathered for another model.
  Statistics& operator+=(const Statistics& other);

  std::string model;                                  ///< a fingerprint of what they were gathered for
  std::map<std::string, std::vector<double>> sums{};  ///< by name
  double least = 0;                                   ///< of the targets, in their own units
  double most = 0;
};

/// `model`: the bytes of a model file whose solver is the moments, for numbers as targets. Features that it does not
/// know are left out. Throws std::invalid_argument for other models, DataError for bad rows.
Statistics partial_statistics(const std::string& model, const MemoryRows& rows, int threads = 0,
                              const std::function<bool()>& interrupted = {});

struct StatisticsApplied {
  std::string model;       ///< the bytes of the next one
  double rmse = 0;         ///< of the model before, by the statistics
  bool is_trying = false;  ///< the next round tries out a step
  Index steps_tried = 0;
  Index steps_taken = 0;
};
StatisticsApplied apply_statistics(const std::string& model, const Statistics& all);

}  // namespace dyad
