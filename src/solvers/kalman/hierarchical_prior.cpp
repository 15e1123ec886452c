#include "solvers/kalman/hierarchical_prior.h"

#include <algorithm>
#include <stdexcept>

namespace dyad {
namespace {

/// Number of parameters with the variance of the level above that each level adds. Sensitivity: docs/constants.md.
constexpr double pseudo_count = 10;
/// Largest factor by which an update changes a variance. Sensitivity: docs/constants.md.
constexpr double max_change_ratio = 4;

}  // namespace

void PriorSums::add(const PriorSums& other) {
  for (std::size_t i = 0; i < squares.size(); ++i) {
    squares[i] += other.squares[i];
    counts[i] += other.counts[i];
  }
}

HierarchicalPrior::HierarchicalPrior(Index groups, Index rank, double factors, double weights, double squares)
    : rank_(rank), initial_{factors, weights, squares}, variances_(static_cast<std::size_t>(groups * (rank + 2))) {
  for (std::size_t i = 0; i < variances_.size(); ++i) variances_[i] = initial(static_cast<Index>(i) % places());
}

void HierarchicalPrior::update(const PriorSums& sums) {
  const auto at = [&](Index group, Index place) { return static_cast<std::size_t>(group * places() + place); };
  const auto shrink = [](double parent, double squares, double count) {
    return (pseudo_count * parent + squares) / (pseudo_count + count);
  };
  const auto set = [&](std::size_t i, double parent) {
    variances_[i] = std::clamp(shrink(parent, sums.squares[i], sums.counts[i]), variances_[i] / max_change_ratio,
                               variances_[i] * max_change_ratio);
  };
  // Weights and squares have one place, so that the group and the place are the same level.
  for (const Index place : {weight_place(), square_place()}) {
    double squares = 0;
    double count = 0;
    for (Index group = 0; group < group_count(); ++group) {
      squares += sums.squares[at(group, place)];
      count += sums.counts[at(group, place)];
    }
    const double all = shrink(initial(place), squares, count);
    for (Index group = 0; group < group_count(); ++group) set(at(group, place), all);
  }
  std::vector<double> group_squares(static_cast<std::size_t>(group_count()));
  std::vector<double> group_counts(group_squares.size());
  double squares = 0;
  double count = 0;
  for (Index group = 0; group < group_count(); ++group)
    for (Index place = 0; place < rank_; ++place) {
      group_squares[static_cast<std::size_t>(group)] += sums.squares[at(group, place)];
      group_counts[static_cast<std::size_t>(group)] += sums.counts[at(group, place)];
      squares += sums.squares[at(group, place)];
      count += sums.counts[at(group, place)];
    }
  const double all = shrink(initial(0), squares, count);
  for (Index group = 0; group < group_count(); ++group) {
    const auto g = static_cast<std::size_t>(group);
    const double parent = shrink(all, group_squares[g], group_counts[g]);
    for (Index place = 0; place < rank_; ++place) set(at(group, place), parent);
  }
}

void HierarchicalPrior::archive(Archive& archive) {
  archive.vector("initial", initial_, 3);
  archive.vector("variances", variances_, static_cast<Index>(variances_.size()));
  const auto is_positive = [](double variance) { return variance > 0; };
  if (!std::all_of(initial_.begin(), initial_.end(), is_positive) ||
      !std::all_of(variances_.begin(), variances_.end(), is_positive))
    throw std::runtime_error("the training state has a prior variance that is not positive");
}

}  // namespace dyad
