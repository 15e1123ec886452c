#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <dyad/data.h>

#include "base/file_paths.h"
#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "encoding/table.h"

namespace dyad {

/// All rows of all files, as features.
class RowStream {
 public:
  virtual ~RowStream() = default;

  /// Fills an empty block up to its limits, whatever the files and pipes deliver at a time. An empty block is the end.
  virtual void fill(RowBlock<double>& block, const BlockLimits& limits) = 0;
};

/// Reads for training if the map is not fixed yet (the first block and the options fix it) or may grow; for prediction
/// otherwise.
struct RowStreamOptions {
  const DataOptions& data;
  const ColumnOptions& columns;
  TableEncoder::Targets targets = TableEncoder::Targets::needed;
  TableEncoder::Unknown unknown = TableEncoder::Unknown::grows;
  Index room = 1;  ///< features that a side is given at least, where the first rows are few and more may come
  std::function<bool()> stop{};  ///< as in Input
};

/// All files that reading `data` opens, the files of targets included.
std::vector<NamedFile> input_files(const DataOptions& data);

/// The files that can be read a second time.
DataOptions regular_files(const DataOptions& data);
/// Whether all rows can: those of regular files, or in memory.
bool can_be_read_again(const DataOptions& data);

/// The map must outlive the stream. A stream writes to it only while it is not fixed, if unknown features grow, or if
/// targets are needed (a second class): predictions in several threads can share one map.
std::unique_ptr<RowStream> open_rows(FeatureMap& map, const RowStreamOptions& options);

}  // namespace dyad
