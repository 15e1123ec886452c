#pragma once

#include <cstddef>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Selection of the regularization level with the smallest held-out loss, with early stopping.
///
/// Level 0 is the result of the first pass. A level of multi-pass training is a variational sweep, or a fit with one
/// ridge of the regularization path; see MultiPassSolver.
class EarlyStopping {
 public:
  /// `one_pass_loss`: held-out loss at level 0. `patience`: number of levels over which the loss must decrease;
  /// see should_continue().
  /// `can_select_one_pass`: if false, best() is at least 1 as soon as a level has been added.
  EarlyStopping(double one_pass_loss, std::size_t patience, bool can_select_one_pass)
      : losses_{one_pass_loss},
        best_loss_(one_pass_loss),
        patience_(patience),
        can_select_one_pass_(can_select_one_pass) {}

  /// Adds the loss at the next level. Returns true if that level becomes best().
  bool add(double loss) {
    losses_.push_back(loss);
    if (!(loss < best_loss_ || (level() == 1 && !can_select_one_pass_))) return false;
    best_loss_ = loss;
    best_ = level();
    return true;
  }

  /// Whether a further level may decrease the loss. False if the loss has not decreased by `min_relative_decrease` over
  /// the last `patience` levels, or if the first `2 patience + 2` levels are all worse than level 0.
  [[nodiscard]] bool should_continue() const {
    // Smallest relative decrease of the loss over `patience` levels that counts as progress. Sensitivity:
    // docs/constants.md.
    constexpr double min_relative_decrease = 3e-4;
    const auto patience = static_cast<Index>(patience_);
    const Index max_levels_without_gain = 2 * patience + 2;
    if (best_ == 0 && level() >= max_levels_without_gain) return false;
    // The first ridge is strong, so that its loss may exceed that of level 0. Levels are therefore compared with
    // earlier levels, and level 0 is not one of them.
    if (level() <= patience) return true;
    return losses_.back() < (1 - min_relative_decrease) * losses_[losses_.size() - 1 - patience_];
  }

  [[nodiscard]] Index level() const { return static_cast<Index>(losses_.size()) - 1; }  ///< last level added
  [[nodiscard]] Index best() const { return best_; }                                    ///< best level; 0: one pass
  [[nodiscard]] double one_pass_loss() const { return losses_.front(); }
  [[nodiscard]] double best_loss() const { return best_loss_; }

 private:
  std::vector<double> losses_;  ///< by level
  double best_loss_;
  Index best_ = 0;
  std::size_t patience_;
  bool can_select_one_pass_;
};

}  // namespace dyad
