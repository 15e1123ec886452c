#include <algorithm>
#include <optional>

#include <dyad/error.h>

#include "encoding/sources/streams.h"
#include "io/libsvm.h"

namespace dyad {
namespace {

/// Rows of libsvm files.
class LibsvmStream : public RowStream {
 public:
  LibsvmStream(FeatureMap& map, const RowStreamOptions& options)
      : map_(map), options_(options), files_(options.data, options.stop) {
    require_no_column_names(options.columns, "libsvm");
    if (map.is_fitted()) return;
    if (map.is_bilinear()) set_right_range(map, options.columns.right);
    map.index_base = options.columns.index_base;
  }

  void fill(RowBlock<double>& block, const BlockLimits& requested) override {
    block.clear();
    const BlockLimits limits = limit_sparse_block(map_, requested);
    while (!limits.are_reached_by(block)) {
      if (lines_.text.empty() && !(reader_ && reader_->next(lines_))) {
        if (files_.at_end() || block.count() > 0) break;  // a block contains rows of one file
        reader_.emplace(files_.next());
        continue;
      }
      parse_libsvm(lines_, reader_->path(), limits, block);
    }
    if (block.count() == 0) return;
    block.file = reader_->path();
    if (!map_.is_fitted()) {
      set_min_feature_count(map_, block.count(), options_.min_feature_count);
      map_.set_columns({});
      fit_target(map_.target, block, options_.columns, !map_.is_measurement(), reader_->path(),
                 [this](TargetScan& scan) { scan_files(scan); });
    }
    if (options_.targets == Targets::needed)
      encode_targets(map_.target, block, reader_->path());
    else
      block.targets.clear();
    if (!encoder_) encoder_.emplace(map_, options_.unknown == UnknownFeatures::add);
    encoder_->encode_sparse(block);
    if (map_.layout == Layout::sparse) densify_if_filled(block);
  }

 private:
  /// Adds the targets of all regular files.
  void scan_files(TargetScan& scan) const {
    const DataOptions data = regular_files(options_.data);
    FileSequence files(data, options_.stop);
    std::optional<LineReader> reader;
    LineBlock lines;
    RowBlock<double> block;
    scan_targets(
        [&] {
          if (lines.text.empty() && !(reader && reader->next(lines))) {
            if (files.at_end()) return false;
            reader.emplace(files.next());
            return true;
          }
          block.clear();
          parse_libsvm(lines, reader->path(), {4096, 1 << 19}, block);  // limits as in row_reader.cpp
          for (std::size_t i = 0; i < block.targets.size(); ++i)
            scan.add(Target::Sample(block.targets[i], block.lines[i], &reader->path()));
          return true;
        },
        options_.stop);
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  FileSequence files_;
  std::optional<LineReader> reader_;
  LineBlock lines_;
  std::optional<RowEncoder> encoder_;  ///< created when the map is fitted
};

}  // namespace

std::unique_ptr<RowStream> open_libsvm(FeatureMap& map, const RowStreamOptions& options) {
  return std::make_unique<LibsvmStream>(map, options);
}

}  // namespace dyad
