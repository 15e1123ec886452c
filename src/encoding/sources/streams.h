#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "encoding/sources/row_stream.h"
#include "io/input.h"

namespace dyad {

using Targets = TableEncoder::Targets;
using Unknown = TableEncoder::Unknown;

/// One for each family of formats.
std::unique_ptr<RowStream> open_libsvm(FeatureMap& map, const RowStreamOptions& options);
std::unique_ptr<RowStream> open_table(FeatureMap& map, const RowStreamOptions& options, char separator);
std::unique_ptr<RowStream> open_arrays(FeatureMap& map, const RowStreamOptions& options);
std::unique_ptr<RowStream> open_memory(FeatureMap& map, const RowStreamOptions& options);

/// The files one after the other.
class Files {
 public:
  Files(const DataOptions& data, std::function<bool()> stop) : data_(data), stop_(std::move(stop)) {}

  [[nodiscard]] bool at_end() const { return next_ == data_.paths.size(); }
  Input next() { return {data_.paths[next_++], stop_, data_.limits}; }
  [[nodiscard]] Input target_of_last() const { return {data_.target_paths[next_ - 1], stop_, data_.limits}; }

 private:
  const DataOptions& data_;
  std::function<bool()> stop_;
  std::size_t next_ = 0;
};

/// --right for columns that have numbers as names: FIRST-LAST or FIRST-.
void set_right_range(FeatureMap& map, const std::vector<std::string>& right);

void refuse_names(const ColumnOptions& options, const char* format);

/// Where the first rows are few, a side that grows is given `room` features.
void make_room(FeatureMap& map, Index first_rows, Index room);

/// Reads targets until the end, or until the reading is to stop. An error of the data ends it, too: it is thrown again
/// when the rows are read to learn from.
void scan_targets(const std::function<bool()>& read_next, const std::function<bool()>& stop);

/// From the numbers of the first rows. `scan` as in fix_table().
void fix_target(Target& target, const RowBlock<double>& block, const ColumnOptions& options, bool centred,
                const std::string& file, const std::function<void(TargetScan&)>& scan);
void encode_targets(Target& target, RowBlock<double>& block, const std::string& file);

/// Decides how columns that have numbers as names are scaled, from the first rows: `column(j)` gives theirs.
void fix_numbers(FeatureMap& map, Index columns, const std::function<std::vector<double>(Index)>& column,
                 std::span<const double> weights, const std::string& file);

/// Sparse text often holds dense rows, and dense kernels are several times faster.
void make_dense_where_worth_it(RowBlock<double>& block);

/// Limits of a block of sparse rows. Models of tables and matrices encode them as dense rows, so that fewer fit.
BlockLimits sparse_limits(const FeatureMap& map, BlockLimits limits);

}  // namespace dyad
