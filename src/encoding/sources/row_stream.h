#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/types.h>

#include "base/file_paths.h"
#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "encoding/table_encoder.h"
#include "io/input.h"

namespace dyad {

class TextStream;

/// Encoded rows of all files of a run, or of rows in memory, in order. Not thread-safe.
class RowStream {
 public:
  virtual ~RowStream() = default;

  /// Replaces `block` by the next rows, up to the limits. Blocks do not depend on the sizes of partial reads from files
  /// and pipes. An empty block is the end.
  virtual void fill(RowBlock<double>& block, const BlockLimits& limits) = 0;

  /// This object if it reads text, which several threads can parse; else nullptr.
  [[nodiscard]] virtual TextStream* text() { return nullptr; }
};

/// Options of open_rows(). If the map is not fitted, the options and the first block determine it. Refers to `data` and
/// `columns`, which must outlive the stream.
struct RowStreamOptions {
  const DataOptions& data;
  const ColumnOptions& columns;
  TableEncoder::Targets targets = TableEncoder::Targets::needed;
  TableEncoder::UnknownFeatures unknown = TableEncoder::UnknownFeatures::add;
  Index min_feature_count = 1;   ///< FeatureMap::min_feature_count for a small first block, see set_min_feature_count()
  std::function<bool()> stop{};  ///< as Input::stop
  std::size_t block_bytes = Input::default_block_bytes;  ///< as Input::block_bytes
};

/// All files of `data`, including the files of targets.
std::vector<NamedFile> input_files(const DataOptions& data);

/// `data` with only the regular files, which can be read twice.
DataOptions regular_files(const DataOptions& data);
/// True if all rows can be read twice: all files are regular, or the rows are in memory.
bool can_reread(const DataOptions& data);

/// Opens the rows of files or of memory. Does not own the map, which must outlive the stream. The stream modifies the
/// map only if the map is not fitted, if unknown features are added, or if targets are needed (a second class may
/// occur). Otherwise several streams in several threads can share one map.
std::unique_ptr<RowStream> open_rows(FeatureMap& map, const RowStreamOptions& options);

}  // namespace dyad
