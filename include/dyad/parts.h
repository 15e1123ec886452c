#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dyad/data.h>
#include <dyad/memory.h>
#include <dyad/recover.h>
#include <dyad/statistics.h>

namespace dyad {

/// Learning from rows that lie in many parts, on many machines. A driver asks questions about all rows, everybody who
/// holds a part answers for it, and the answers add. Neither side ever holds more than a few numbers per parameter.

/// A number for the content of each row, features and target, wherever it lies: who is in a sample, or held out, does
/// not depend on the parts.
std::vector<std::uint64_t> row_hashes(const MemoryRows& rows);

/// What all parts begin with: a model that was learned from some of the rows, without the contenders of its race.
/// Throws std::invalid_argument for models of the moment solver, of two sides and of single precision.
std::string begin_parts(const std::string& model);

/// Who holds a part of the rows.
class Part {
 public:
  /// `model`: from begin_parts().
  explicit Part(const std::string& model, int threads = 1);
  Part(Part&& other) noexcept;
  Part& operator=(Part&& other) noexcept;
  ~Part();

  /// A question; then the rows of this part, block after block; then the answer, which adds up with those of others.
  void ask(const std::string& question);
  void add(const MemoryRows& rows, std::span<const std::uint64_t> hashes);
  [[nodiscard]] Statistics answer() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

struct PartsStep {
  std::string level;     ///< "one pass", or the ridge of Gauss-Newton
  double share = 1;      ///< of the rows, for one pass
  double loss = -1;      ///< of rows before they were learned; regression: root mean square, in the target's units
  double held_out = -1;  ///< the same of held-out rows; below 0, as before: it is not known
};

struct PartsOptions {
  Solver solver = Solver::automatic;  ///< kalman: one pass; newton: Gauss-Newton; automatic: one, then the other
  double share = 0;                   ///< of the rows, those with the smallest hashes, that the model has learned from
  Index most_looks = 100;             ///< at all rows, by Gauss-Newton; half as many for the last fit
  std::function<Statistics(const std::string& question)> ask;  ///< the sum of all parts' answers
  std::function<void(const PartsStep&)> progress;
};

struct PartsSummary {
  std::string model;   ///< its bytes
  std::string origin;  ///< where it comes from
  Index questions = 0;
  Index rows = 0;
  double one_pass = -1;  ///< held-out losses, as in PartsStep; below 0: none
  double refined = -1;
};

/// Learns all rows but those that the model knows. Throws what `ask` throws.
PartsSummary learn_from_parts(const std::string& model, const PartsOptions& options);

}  // namespace dyad
