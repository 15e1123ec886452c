#pragma once

#include <span>
#include <utility>
#include <vector>

#include <dyad/rows.h>

#include "base/archive.h"

namespace dyad {

/// How large the values of each feature are where they are not zero: what variances of its parameters are measured by.
/// Found from the rows that first show a feature, and kept; 0 where it has not shown itself.
class FeatureScales {
 public:
  /// `standardised`: all features have the scale 1, seen or not.
  FeatureScales(Index dim, bool standardised)
      : standardised_(standardised), scales_(static_cast<std::size_t>(dim), standardised ? 1.0 : 0.0) {}

  [[nodiscard]] std::span<const double> all() const { return scales_; }
  [[nodiscard]] std::vector<double> inverse() const;
  [[nodiscard]] bool are_one() const { return standardised_; }

  /// Features that these rows show for the first time, with their scales.
  template <typename Scalar>
  std::vector<std::pair<Index, double>> meet(const Rows<Scalar>& rows);

  /// Features that somebody else has met.
  void learn_of(std::span<const double> scales);

  /// New features: `left` of them behind the first `left_before`, `right` of them at the end.
  void grow(Index left_before, Index left, Index right);

  void archive(Archive& archive);

 private:
  bool standardised_;
  std::vector<double> scales_;
  double typical_ = 0;
};

}  // namespace dyad
