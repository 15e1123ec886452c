#pragma once

#include <cstddef>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Selection of the level with the smallest held-out loss, with early stopping.
class LevelChoice {
 public:
  /// `patience`: number of levels over which the loss must decrease. With `may_decline`, one pass may be selected.
  LevelChoice(double one_pass, std::size_t patience, bool may_decline)
      : losses_{one_pass}, best_loss_(one_pass), patience_(patience), may_decline_(may_decline) {}

  /// Adds the loss at the next level. Returns true if it is the smallest so far.
  bool add(double loss) {
    losses_.push_back(loss);
    if (!(loss < best_loss_ || (level() == 1 && !may_decline_))) return false;
    best_loss_ = loss;
    best_ = level();
    return true;
  }

  [[nodiscard]] bool goes_on() const {
    constexpr double min_decrease = 3e-4;  // relative
    const auto patience = static_cast<Index>(patience_);
    if (best_ == 0 && level() >= 2 * patience + 2) return false;
    // The first ridge is strong and may be worse than one pass, so that levels are compared with each other.
    if (level() <= patience) return true;
    return losses_.back() < (1 - min_decrease) * losses_[losses_.size() - 1 - patience_];
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
