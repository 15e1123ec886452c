#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dyad/rows.h>

#include "base/cache_aligned.h"

namespace dyad {

/// Non-zero entries of sparse or dense rows, by feature (compressed sparse columns), with targets and weights. Rows of
/// weight 0 are included. Rows are sorted by their first feature, so that the rows of these features are consecutive in
/// memory. Immutable; thread-safe.
class FeatureColumns {
 public:
  /// Entries of one feature.
  struct Column {
    std::span<const std::int32_t> rows;
    const float* values;  ///< null: all values are 1

    [[nodiscard]] Index count() const { return static_cast<Index>(rows.size()); }
    [[nodiscard]] Index row(Index e) const { return rows[static_cast<std::size_t>(e)]; }
    [[nodiscard]] float value(Index e) const { return values == nullptr ? 1.0F : values[e]; }
  };

  /// Copies the rows of all views, one view after the other. All views have the same features.
  template <typename Scalar>
  explicit FeatureColumns(std::span<const Rows<Scalar>> views);

  [[nodiscard]] Index dim() const { return static_cast<Index>(offsets_.size()) - 1; }
  [[nodiscard]] Index row_count() const { return static_cast<Index>(targets_.size()); }
  [[nodiscard]] Index entries() const { return offsets_.back(); }
  [[nodiscard]] Column column(Index feature) const {
    const std::size_t begin = at(offsets_[at(feature)]);
    const std::size_t end = at(offsets_[at(feature + 1)]);
    return {std::span(rows_).subspan(begin, end - begin), values_.empty() ? nullptr : values_.data() + begin};
  }
  /// Targets and weights by row, in the sorted order.
  [[nodiscard]] const std::vector<float>& targets() const { return targets_; }
  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }
  /// Position of each sorted row in the views.
  [[nodiscard]] const std::vector<std::int32_t>& source_rows() const { return source_rows_; }

  /// Bytes of an object with this number of rows and entries.
  [[nodiscard]] static double bytes_for(double rows, double entries);

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  std::vector<Index> offsets_;
  CacheAlignedVector<std::int32_t> rows_;
  CacheAlignedVector<float> values_;  ///< empty: all 1
  std::vector<float> targets_;
  std::vector<float> weights_;
  std::vector<std::int32_t> source_rows_;
};

}  // namespace dyad
