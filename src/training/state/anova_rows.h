#pragma once

#include <span>
#include <vector>

#include "base/archive.h"
#include "base/random.h"
#include "data/column_table.h"
#include "encoding/feature_map.h"

namespace dyad {

/// Rows of a table with targets and weights.
struct AnovaRows {
  ColumnTable table;
  std::vector<double> targets;
  std::vector<double> weights;

  [[nodiscard]] Index count() const { return static_cast<Index>(targets.size()); }
  void append(const ColumnTable& block, std::size_t i, double target, double weight);
  /// Replaces a row by row i of a block.
  void replace(std::size_t at, const ColumnTable& block, std::size_t i, double target, double weight);
  void clear();
  /// Sum of the weights.
  [[nodiscard]] double total_weight() const;
  /// Weights in units of `unit`; empty: all 1.
  [[nodiscard]] std::vector<double> weights_in_units(double unit) const;
  /// Saves or loads `rows` rows.
  void archive(Archive& archive, Index rows);
};

/// Bounds of the scaled values of each numeric column. Values beyond them are outliers and are clipped.
class ColumnBounds {
 public:
  /// The bounds in the map, which come from the first rows.
  explicit ColumnBounds(const FeatureMap& map);

  /// Extends the bounds of columns with values beyond them to those of robust_scaling() for these rows.
  void extend(const ColumnTable& table);
  void clip(ColumnTable& table) const;
  /// Sets the bounds in the map.
  void write_to(FeatureMap& map) const;

 private:
  struct Bounds {
    double low;
    double high;
  };
  std::vector<Bounds> bounds_;  ///< categorical columns: unused
};

/// Uniform random sample of rows (reservoir sampling, Vitter 1985): all rows as long as their number is at most
/// `max_rows`.
class AnovaSample {
 public:
  AnovaSample(ColumnTable empty_table, Index max_rows, std::uint64_t seed) : max_rows_(max_rows), random_(seed, 0) {
    rows.table = std::move(empty_table);
  }

  void add(const ColumnTable& block, std::size_t i, double target, double weight);
  [[nodiscard]] Index max_rows() const { return max_rows_; }
  [[nodiscard]] bool is_full() const { return rows.count() == max_rows_; }
  /// Whether the sample contains all rows.
  [[nodiscard]] bool is_complete() const { return rows_seen == rows.count(); }

  AnovaRows rows;
  Index rows_seen = 0;  ///< number of all rows

 private:
  Index max_rows_;
  Random random_;
};

}  // namespace dyad
