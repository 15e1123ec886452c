#include <algorithm>
#include <optional>

#include <dyad/data_error.h>

#include "encoding/sources/streams.h"
#include "io/libsvm.h"

namespace dyad {
namespace {

class LibsvmStream : public RowStream {
 public:
  LibsvmStream(FeatureMap& map, const RowStreamOptions& options)
      : map_(map), options_(options), files_(options.data, options.stop) {
    refuse_names(options.columns, "libsvm");
    if (map.is_fixed()) return;
    if (map.is_bilinear()) set_right_range(map, options.columns.right);
    map.index_base = options.columns.index_base;
  }

  void fill(RowBlock<double>& block, const BlockLimits& of_rows) override {
    block.clear();
    const BlockLimits limits = sparse_limits(map_, of_rows);
    while (!limits.reached_by(block)) {
      if (lines_.text.empty() && !(reader_ && reader_->next(lines_))) {
        if (files_.at_end() || block.count() > 0) break;  // a block belongs to one file: its lines have one name
        reader_.emplace(files_.next());
        continue;
      }
      parse_libsvm(lines_, reader_->path(), limits, block);
    }
    if (block.count() == 0) return;
    block.file = reader_->path();
    if (!map_.is_fixed()) {
      make_room(map_, block.count(), options_.room);
      map_.fix({});
      fix_target(map_.target, block, options_.columns, !map_.is_measurement(), reader_->path(),
                 [this](TargetScan& scan) { scan_files(scan); });
    }
    if (options_.targets == Targets::needed)
      encode_targets(map_.target, block, reader_->path());
    else
      block.targets.clear();
    if (!encoder_) encoder_.emplace(map_, options_.unknown == Unknown::grows);
    encoder_->encode_sparse(block);
    if (map_.layout == Layout::sparse) make_dense_where_worth_it(block);
  }

 private:
  void scan_files(TargetScan& scan) const {
    const DataOptions data = regular_files(options_.data);
    Files files(data, options_.stop);
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
          parse_libsvm(lines, reader->path(), {4096, 1 << 19}, block);
          for (std::size_t i = 0; i < block.targets.size(); ++i)
            scan.add(Target::Sample(block.targets[i], block.lines[i], &reader->path()));
          return true;
        },
        options_.stop);
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  Files files_;
  std::optional<LineReader> reader_;
  LineBlock lines_;
  std::optional<RowEncoder> encoder_;  ///< once the map is fixed
};

}  // namespace

std::unique_ptr<RowStream> open_libsvm(FeatureMap& map, const RowStreamOptions& options) {
  return std::make_unique<LibsvmStream>(map, options);
}

}  // namespace dyad
