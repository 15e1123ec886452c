#pragma once

#include <span>
#include <utility>
#include <vector>

#include <dyad/rows.h>

#include "base/archive.h"

namespace dyad {

/// Scale of each feature: the root mean square of its non-zero values in the block of rows in which it first occurs,
/// after outliers are clipped. The scales of features with few values are shrunk towards the typical scale. Prior
/// variances are relative to the scales. A scale does not change once it is set; features that have not occurred have
/// scale 0.
class FeatureScales {
 public:
  /// `features_are_standardized`: all features that have occurred have scale 1.
  FeatureScales(Index dim, bool features_are_standardized)
      : are_one_(features_are_standardized), scales_(static_cast<std::size_t>(dim)), unseen_(dim) {}

  [[nodiscard]] std::span<const double> all() const { return scales_; }
  /// 1 / scale; 0 for features of scale 0.
  [[nodiscard]] std::vector<double> inverse() const;
  /// Number of features without a scale because powers of it overflow or underflow: maximum over the blocks of rows.
  [[nodiscard]] Index omitted() const { return omitted_; }
  /// Whether features are standardized.
  [[nodiscard]] bool are_one() const { return are_one_; }

  /// Sets the scales of features that occur for the first time and returns these features with their scales. In dense
  /// rows of standardized features all features occur.
  template <typename Scalar>
  std::vector<std::pair<Index, double>> add_new_features(const Rows<Scalar>& rows);

  /// Sets the scales of features that have not occurred here to those of another object.
  void adopt(std::span<const double> scales);

  /// Inserts `left` features after the first `left_before` and appends `right` features.
  void grow(Index left_before, Index left, Index right);

  /// Saves or loads the scales.
  void archive(Archive& archive);

 private:
  template <typename Scalar>
  std::vector<std::pair<Index, double>> add_standardized_features(const Rows<Scalar>& rows);
  void count_unseen();

  bool are_one_;
  std::vector<double> scales_;
  Index unseen_;            ///< number of features of scale 0
  Index first_unseen_ = 0;  ///< all features before it have a scale
  double typical_ = 0;      ///< median scale of features with many values; 0: unknown
  Index omitted_ = 0;
};

}  // namespace dyad
