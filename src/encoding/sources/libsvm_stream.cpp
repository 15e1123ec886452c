#include <algorithm>
#include <optional>

#include <dyad/error.h>

#include "encoding/sources/streams.h"
#include "encoding/sources/text_stream.h"
#include "io/libsvm.h"

namespace dyad {
namespace {

/// Rows of libsvm files. Chunks contain indices and values as in the text; finish() encodes them.
class LibsvmStream : public TextStream {
 public:
  LibsvmStream(FeatureMap& map, const RowStreamOptions& options)
      : TextStream(options.data.paths),
        map_(map),
        options_(options),
        files_(options.data, options.stop, options.block_bytes) {
    require_no_column_names(options.columns, "libsvm");
    if (map.is_fitted()) return;
    if (map.is_bilinear()) set_right_range(map, options.columns.right);
    map.index_base = options.columns.index_base;
  }

  bool can_parse_ahead() override { return true; }

  BlockLimits begin(RowBlock<double>& block, const BlockLimits& limits) override {
    return limit_sparse_block(map_, TextStream::begin(block, limits));
  }

  void finish(RowBlock<double>& block) override {
    if (!map_.is_fitted()) {
      set_min_feature_count(map_, block.count(), options_.min_feature_count);
      map_.set_columns({});
      fit_target(map_.target, block, options_.columns, !map_.is_measurement(), block.file,
                 [this](TargetScan& scan) { scan_files(scan); });
    }
    if (options_.targets == Targets::needed)
      encode_targets(map_.target, block, block.file);
    else
      block.targets.clear();
    if (!encoder_) encoder_.emplace(map_, options_.unknown == UnknownFeatures::add);
    encoder_->encode_sparse(block);
    if (map_.layout == Layout::sparse) densify_if_filled(block);
  }

 protected:
  bool read_lines(TextChunk& chunk) override {
    while (true) {
      chunk.file = file_;
      if (reader_ && reader_->next(chunk.lines)) break;
      if (files_.at_end()) return false;
      chunk.file.reset();
      file_.reset();
      const Input input = files_.next();
      reader_.emplace(input);
      file_ = std::make_shared<TextChunk::File>(input.path);
    }
    reader_->take_buffer(chunk.buffer);
    return true;
  }

  void parse_lines(TextChunk& chunk, const BlockLimits& limits) const override {
    parse_libsvm(chunk.lines, chunk.file->path, limits, chunk.encoded.rows);
  }

  void append_rows(TextChunk& chunk, const BlockLimits& limits, RowBlock<double>& block) override {
    const RowBlock<double>& from = chunk.encoded.rows;
    const auto offset = from.offsets.begin() + chunk.next_row;
    const Index max_entries = std::min(limits.max_entries - std::ssize(block.values), std::ssize(from.values) + 1);
    Index count = std::min(from.count() - chunk.next_row, limits.max_rows - block.count());
    count = std::min<Index>(count, std::lower_bound(offset, offset + count, *offset + max_entries) - offset);
    const Index shift = block.offsets.back() - *offset;
    const auto append = [](auto& to, const auto& numbers, Index first, Index last) {
      to.insert(to.end(), numbers.begin() + first, numbers.begin() + last);
    };
    append(block.columns, from.columns, *offset, offset[count]);
    append(block.values, from.values, *offset, offset[count]);
    append(block.targets, from.targets, chunk.next_row, chunk.next_row + count);
    append(block.lines, from.lines, chunk.next_row, chunk.next_row + count);
    for (Index row = 1; row <= count; ++row) block.offsets.push_back(offset[row] + shift);
    chunk.next_row += count;
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
  std::shared_ptr<const TextChunk::File> file_;  ///< of `reader_`
  std::optional<RowEncoder> encoder_;            ///< created when the map is fitted
};

}  // namespace

std::unique_ptr<RowStream> open_libsvm(FeatureMap& map, const RowStreamOptions& options) {
  return std::make_unique<LibsvmStream>(map, options);
}

}  // namespace dyad
