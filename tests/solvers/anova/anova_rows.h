#pragma once

#include <cmath>
#include <vector>

#include "base/random.h"
#include "data/column_table.h"
#include "solvers/anova/anova_fit.h"
#include "support.h"

namespace dyad::test {

/// A table with targets.
struct AnovaRows {
  ColumnTable table;
  std::vector<double> targets;

  ColumnTable::Column& add_column(bool is_categorical = false) {
    table.columns.emplace_back().is_categorical = is_categorical;
    return table.columns.back();
  }
};

/// Columns of independent uniform numbers in [0, 1) and zero targets.
inline AnovaRows uniform_rows(Index count, Index columns, std::uint64_t seed) {
  Random random(seed, 0);
  AnovaRows rows;
  for (Index j = 0; j < columns; ++j) {
    std::vector<double>& values = rows.add_column().values;
    for (Index i = 0; i < count; ++i) values.push_back(random.uniform());
  }
  rows.targets.assign(static_cast<std::size_t>(count), 0.0);
  return rows;
}

/// The rows at `order`; indices may repeat.
inline AnovaRows select_rows(const AnovaRows& rows, const std::vector<std::size_t>& order) {
  AnovaRows result;
  for (const ColumnTable::Column& column : rows.table.columns) {
    ColumnTable::Column& copy = result.add_column(column.is_categorical);
    for (const std::size_t i : order) copy.values.push_back(column.values[i]);
  }
  for (const std::size_t i : order) result.targets.push_back(rows.targets[i]);
  return result;
}

inline AnovaFit fit(const AnovaRows& rows, const AnovaOptions& options = {}, const std::vector<double>& weights = {}) {
  return fit_anova(rows.table, rows.targets, weights, options, pool());
}

inline std::vector<double> predict(const AnovaModel& model, const ColumnTable& table) {
  std::vector<double> predictions(static_cast<std::size_t>(table.count()));
  model.predict(table, predictions);
  return predictions;
}

inline double root_mean_square_difference(const std::vector<double>& a, const std::vector<double>& b) {
  return (as_vector(a) - as_vector(b)).norm() / std::sqrt(static_cast<double>(a.size()));
}

}  // namespace dyad::test
