#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "encoding/sources/row_stream.h"
#include "encoding/table.h"
#include "io/input.h"

namespace dyad {

using Targets = TableEncoder::Targets;
using UnknownFeatures = TableEncoder::UnknownFeatures;

// Row sources by layout: csv and tsv tables, npy arrays, libsvm text, and rows in memory. open_rows() selects one.

/// Opens libsvm files.
std::unique_ptr<RowStream> open_libsvm(FeatureMap& map, const RowStreamOptions& options);
/// Opens csv or tsv files.
std::unique_ptr<RowStream> open_table(FeatureMap& map, const RowStreamOptions& options, char separator);
/// Opens npy files.
std::unique_ptr<RowStream> open_arrays(FeatureMap& map, const RowStreamOptions& options);
/// Opens rows in memory (DataOptions::dataset).
std::unique_ptr<RowStream> open_memory(FeatureMap& map, const RowStreamOptions& options);

/// Iterates over the files of a run. Does not own `data`.
class FileSequence {
 public:
  FileSequence(const DataOptions& data, std::function<bool()> stop,
               std::size_t block_bytes = Input::default_block_bytes)
      : data_(data), stop_(std::move(stop)), block_bytes_(block_bytes) {}

  [[nodiscard]] bool at_end() const { return next_ == data_.paths.size(); }
  Input next() { return {data_.paths[next_++], stop_, data_.limits, block_bytes_}; }
  /// The file of targets that belongs to the last result of next().
  [[nodiscard]] Input current_targets() const { return {data_.target_paths[next_ - 1], stop_, data_.limits}; }

 private:
  const DataOptions& data_;
  std::function<bool()> stop_;
  std::size_t block_bytes_;
  std::size_t next_ = 0;
};

/// Parses ColumnOptions::right for columns without names, `FIRST-LAST` or `FIRST-`, into FeatureMap::right_first and
/// right_last. Throws std::invalid_argument for other texts.
void set_right_range(FeatureMap& map, const std::vector<std::string>& right);

/// Throws std::invalid_argument for options that refer to column names. `format`: for the message.
void require_no_column_names(const ColumnOptions& options, const char* format);

/// Sets FeatureMap::min_feature_count if the first block has fewer than 1024 rows. A small first block may contain
/// fewer features than the rank, although later blocks contain more.
void set_min_feature_count(FeatureMap& map, Index first_rows, Index min_feature_count);

/// Calls `read_next` until it returns false, `stop` returns true, or a DataError is thrown. The error is ignored,
/// because reading the same rows for training throws it again.
void scan_targets(const std::function<bool()>& read_next, const std::function<bool()>& stop);

/// Determines the target encoding from the numeric targets of the first block. `scan` as in fit_table().
void fit_target(Target& target, const RowBlock<double>& block, const ColumnOptions& options, bool centered,
                const std::string& file, const std::function<void(TargetScan&)>& scan);
/// Replaces the targets of a block by their codes.
void encode_targets(Target& target, RowBlock<double>& block, const std::string& file);

/// Sets the columns of the map to `columns` numeric columns without names and determines their scaling. `column(j)`
/// returns the values of column j in the first rows.
void fit_numeric_columns(FeatureMap& map, Index columns, const std::function<std::vector<double>(Index)>& column,
                         std::span<const double> weights, const std::string& file);

/// Converts a sparse block to dense storage if at least a quarter of its cells is stored and it has at most 4096
/// features. libsvm files often contain
/// dense rows, for which dense kernels are several times faster.
void densify_if_filled(RowBlock<double>& block);

/// Limits of a block of sparse rows. If the map encodes them as dense rows, `max_rows` is reduced such that the dense
/// block has at most `max_entries` numbers.
BlockLimits limit_sparse_block(const FeatureMap& map, BlockLimits limits);

}  // namespace dyad
