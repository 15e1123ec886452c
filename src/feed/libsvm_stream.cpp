#include <algorithm>
#include <optional>

#include <dyad/data_error.h>

#include "feed/streams.h"
#include "source/libsvm.h"

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

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
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
    encode_indices(block);
    make_dense_where_worth_it(block);
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
            scan.add(shortest(block.targets[i]), block.lines[i], reader->path());
          return true;
        },
        options_.stop);
  }

  void encode_indices(RowBlock<double>& block) {
    if (!map_.is_bilinear() && map_.hash_bits == 0 && map_.index_base == 0) {
      // Indices are features already, unless one is unknown.
      const auto largest = std::max_element(block.columns.begin(), block.columns.end());
      if (largest == block.columns.end() ||
          map_.indexed(*largest, options_.unknown == Unknown::grows).second != FeatureMap::unknown)
        return RowBuilder::finish(map_, block);
    }
    columns_.clear();
    values_.clear();
    offsets_.assign(1, 0);
    for (std::size_t i = 0; i < block.lines.size(); ++i) {
      encode_row(block, i);
      if (map_.hash_bits > 0) std::sort(row_.begin(), row_.end());
      for (const auto& [feature, value] : row_) {
        const auto column = static_cast<std::int32_t>(feature < right_mark ? feature : ~(feature - right_mark));
        if (static_cast<Index>(columns_.size()) > offsets_.back() && columns_.back() == column) {
          values_.back() += value;
          continue;
        }
        columns_.push_back(column);
        values_.push_back(value);
      }
      offsets_.push_back(static_cast<Index>(values_.size()));
    }
    block.columns.swap(columns_);
    block.values.swap(values_);
    block.offsets.swap(offsets_);
    RowBuilder::finish(map_, block);
  }

  /// The features of one row, those of z marked, in the order of the indices.
  void encode_row(RowBlock<double>& block, std::size_t i) {
    row_.clear();
    for (auto e = static_cast<std::size_t>(block.offsets[i]); e < static_cast<std::size_t>(block.offsets[i + 1]); ++e) {
      const std::int64_t index = block.columns[e];
      if (index < map_.index_base || (map_.right_last >= 0 && index > map_.right_last))
        throw DataError(reader_->path(), block.lines[i], 0,
                        "expected an index " +
                            (index < map_.index_base ? "of at least " + std::to_string(map_.index_base)
                                                     : "up to " + std::to_string(map_.right_last)) +
                            ", got " + std::to_string(index));
      const auto [side, feature] = map_.indexed(index, options_.unknown == Unknown::grows);
      if (feature == FeatureMap::unknown)
        block.unknown_cells.push_back({static_cast<Index>(i), map_.group_of_side(side)});
      else
        row_.emplace_back(side == FeatureMap::Side::left ? feature : feature + right_mark, block.values[e]);
    }
  }

  static constexpr std::int64_t right_mark = std::int64_t{1} << 32;

  FeatureMap& map_;
  RowStreamOptions options_;
  Files files_;
  std::optional<LineReader> reader_;
  LineBlock lines_;
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
  std::vector<Index> offsets_;
  std::vector<std::pair<std::int64_t, double>> row_;
};

}  // namespace

std::unique_ptr<RowStream> open_libsvm(FeatureMap& map, const RowStreamOptions& options) {
  return std::make_unique<LibsvmStream>(map, options);
}

}  // namespace dyad
