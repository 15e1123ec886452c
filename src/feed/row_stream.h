#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <dyad/data.h>

#include "base/file_paths.h"
#include "features/feature_map.h"
#include "features/table.h"
#include "rows/block.h"

namespace dyad {

/// All rows of all files, as features.
class RowStream {
 public:
  virtual ~RowStream() = default;

  /// Fills an empty block up to its limits, whatever the files and pipes deliver at a time. An empty block is the end.
  virtual void fill(RowBlock<double>& block, const BlockLimits& limits) = 0;
};

/// Reads for training where the map is not fixed yet (the first block decides, by the options) or may grow; for
/// prediction otherwise. The map must outlive the stream; a set flag ends reads that wait.
struct RowStreamOptions {
  const DataOptions& data;
  const ColumnOptions& columns;
  TableEncoder::Targets targets = TableEncoder::Targets::needed;
  TableEncoder::Unknown unknown = TableEncoder::Unknown::grows;
  Index room = 1;  ///< features that a side is given at least, where the first rows are few and more may come
  const std::atomic<bool>* stop = nullptr;
};

/// All files that reading `data` opens, the files of targets included.
std::vector<NamedFile> input_files(const DataOptions& data);

std::unique_ptr<RowStream> open_rows(FeatureMap& map, const RowStreamOptions& options);

}  // namespace dyad
