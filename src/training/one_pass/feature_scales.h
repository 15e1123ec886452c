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
  /// `standardised`: all features that have shown themselves have the scale 1.
  FeatureScales(Index dim, bool standardised)
      : standardised_(standardised), scales_(static_cast<std::size_t>(dim)), unseen_(dim) {}

  [[nodiscard]] std::span<const double> all() const { return scales_; }
  [[nodiscard]] std::vector<double> inverse() const;
  /// Features whose scale is not possible, in the block of rows that had most of them.
  [[nodiscard]] Index left_out() const { return left_out_; }
  [[nodiscard]] bool are_one() const { return standardised_; }

  /// Features that these rows show for the first time, with their scales. Dense rows of standardised features show all.
  template <typename Scalar>
  std::vector<std::pair<Index, double>> add_new_features(const Rows<Scalar>& rows);

  /// Features that another object has already registered.
  void learn_of(std::span<const double> scales);

  /// New features: `left` of them behind the first `left_before`, `right` of them at the end.
  void grow(Index left_before, Index left, Index right);

  void archive(Archive& archive);

 private:
  template <typename Scalar>
  std::vector<std::pair<Index, double>> meet_standardised(const Rows<Scalar>& rows);
  void count_unseen();

  bool standardised_;
  std::vector<double> scales_;
  Index unseen_;  ///< features of scale 0
  double typical_ = 0;
  Index left_out_ = 0;
};

}  // namespace dyad
