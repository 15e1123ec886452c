#pragma once

#include <cstddef>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Which level held-out rows like best, and whether another is worth a try.
class LevelChoice {
 public:
  /// `patience`: levels over which the loss must fall. With `may_decline`, one pass may be the best.
  LevelChoice(double one_pass, std::size_t patience, bool may_decline)
      : losses_{one_pass}, best_loss_(one_pass), patience_(patience), may_decline_(may_decline) {}

  /// The loss at the next level; true where it is the best so far.
  bool add(double loss) {
    losses_.push_back(loss);
    if (!(loss < best_loss_ || (level() == 1 && !may_decline_))) return false;
    best_loss_ = loss;
    best_ = level();
    return true;
  }

  [[nodiscard]] bool goes_on() const {
    constexpr double worth_it = 3e-4;  // of the loss
    const auto patience = static_cast<Index>(patience_);
    if (best_ == 0 && level() >= 2 * patience + 2) return false;
    // The first ridge is strong, and may be worse than one pass; the levels are compared with each other.
    if (level() <= patience) return true;
    return losses_.back() < (1 - worth_it) * losses_[losses_.size() - 1 - patience_];
  }

  [[nodiscard]] Index level() const { return static_cast<Index>(losses_.size()) - 1; }
  [[nodiscard]] Index best() const { return best_; }  ///< 0: one pass
  [[nodiscard]] double one_pass() const { return losses_.front(); }
  [[nodiscard]] double best_loss() const { return best_loss_; }

 private:
  std::vector<double> losses_;
  double best_loss_;
  Index best_ = 0;
  std::size_t patience_;
  bool may_decline_;
};

}  // namespace dyad
