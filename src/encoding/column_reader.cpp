#include "encoding/column_reader.h"

#include <algorithm>
#include <limits>

namespace dyad {

ColumnReader::ColumnReader(const FeatureMap& map)
    : map_(map), columns_(map.indicator_columns()), is_missing_indicator_(columns_.size()) {
  for (std::size_t c = 0; c < map.columns().size(); ++c) {
    const Column& column = map.columns()[c];
    low_.push_back((column.scaling.low - column.scaling.center) / column.scaling.scale);
    high_.push_back((column.scaling.high - column.scaling.center) / column.scaling.scale);
    if (column.role != Column::Role::numeric) continue;
    columns_[static_cast<std::size_t>(column.number_feature)] = static_cast<Index>(c);
    if (column.missing_feature >= 0) is_missing_indicator_[static_cast<std::size_t>(column.missing_feature)] = true;
  }
}

ColumnTable ColumnReader::empty_table() const {
  ColumnTable table;
  for (const Column& column : map_.columns())
    table.columns.emplace_back().is_categorical = column.role == Column::Role::categorical;
  return table;
}

template <typename Scalar>
void ColumnReader::append(const Rows<Scalar>& rows, ColumnTable& table) const {
  const auto first = static_cast<std::size_t>(table.count());
  const std::size_t count = first + static_cast<std::size_t>(rows.count());
  for (ColumnTable::Column& column : table.columns) column.values.resize(count, column.is_categorical ? -1.0 : 0.0);
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const auto feature = static_cast<std::size_t>(j);
      if (x == Scalar(0) || feature >= columns_.size() || columns_[feature] < 0) return;
      const auto c = static_cast<std::size_t>(columns_[feature]);
      ColumnTable::Column& column = table.columns[c];
      column.values[first + static_cast<std::size_t>(i)] = column.is_categorical ? static_cast<double>(j)
                                                           : is_missing_indicator_[feature]
                                                               ? std::numeric_limits<double>::quiet_NaN()
                                                               : std::clamp(static_cast<double>(x), low_[c], high_[c]);
    });
}

template void ColumnReader::append(const Rows<float>&, ColumnTable&) const;
template void ColumnReader::append(const Rows<double>&, ColumnTable&) const;

}  // namespace dyad
