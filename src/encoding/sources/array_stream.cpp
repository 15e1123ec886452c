#include <algorithm>
#include <optional>
#include <stdexcept>

#include <dyad/error.h>

#include "encoding/sources/streams.h"
#include "io/npy.h"

namespace dyad {
namespace {

/// Rows of npy files, with the targets in separate npy files.
class ArrayStream : public RowStream {
 public:
  ArrayStream(FeatureMap& map, const RowStreamOptions& options)
      : map_(map), options_(options), files_(options.data, options.stop) {
    const DataOptions& data = options.data;
    if (options.targets == Targets::needed && data.target_paths.size() != data.paths.size())
      throw std::invalid_argument("npy needs one array of targets for each file: set DataOptions::target_paths");
    require_no_column_names(options.columns, "npy");
    if (map.is_fitted()) return;
    if (map.is_bilinear()) set_right_range(map, options.columns.right);
  }

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    while (block.count() == 0) {
      if (!features_ || rows_read_ == features_->rows()) {
        if (files_.at_end()) return;
        open_next();
        continue;
      }
      read(block, limits);
    }
    block.file = path_;
    if (!map_.is_fitted()) {
      const Index columns = features_->columns();
      const auto column = [&](Index j) {
        std::vector<double> values;
        for (auto i = static_cast<std::size_t>(j); i < block.values.size(); i += static_cast<std::size_t>(columns))
          values.push_back(block.values[i]);
        return values;
      };
      fit_numeric_columns(map_, columns, column, {}, path_);
      fit_target(map_.target, block, options_.columns, !map_.is_measurement(), path_,
                 [this](TargetScan& scan) { scan_files(scan); });
    }
    encode_targets(map_.target, block, path_);
    encode(block);
  }

 private:
  /// The map must be fitted.
  RowEncoder& encoder() {
    if (!encoder_) encoder_.emplace(map_, options_.unknown == UnknownFeatures::add);
    return *encoder_;
  }

  void encode(RowBlock<double>& block) {
    const Index columns = features_->columns();
    raw_.swap(block.values);
    block.values.clear();
    raw_lines_.swap(block.lines);
    block.lines.clear();
    const double* row = raw_.data();
    for (const std::int64_t line : raw_lines_) {
      encoder().append_dense(row, columns, 1, {path_, line}, block);
      block.lines.push_back(line);
      row += columns;
    }
    RowEncoder::finish(map_, block);
    if (map_.layout == Layout::sparse) densify_if_filled(block);
  }

  void open_next() {
    const Input input = files_.next();
    path_ = input.path;
    features_.emplace(input, max_abs_value, map_.layout == Layout::table);
    rows_read_ = 0;
    if (map_.is_fitted()) encoder().require_columns(features_->columns(), path_);
    if (options_.targets == Targets::none) return;
    const Input target = files_.current_targets();
    targets_.emplace(target);
    if (targets_->columns() != 1 || targets_->rows() != features_->rows())
      throw DataError(target.path, 0, 0,
                      "expected one target for each of the " + std::to_string(features_->rows()) + " rows of " + path_ +
                          ", got an array of " + std::to_string(targets_->rows()) + " x " +
                          std::to_string(targets_->columns()));
  }

  /// Adds the targets of all regular files.
  void scan_files(TargetScan& scan) const {
    const std::vector<std::string> paths = regular_files(options_.data).target_paths;
    std::size_t next = 0;
    std::optional<NpyReader> reader;
    std::vector<double> targets(4096);  // targets per read
    std::int64_t line = 0;
    scan_targets(
        [&] {
          const Index got = reader && reader->columns() == 1 ? reader->next(targets) : 0;
          for (Index i = 0; i < got; ++i)
            scan.add(Target::Sample(targets[static_cast<std::size_t>(i)], ++line, &paths[next - 1]));
          if (got > 0) return true;
          if (next == paths.size()) return false;
          reader.emplace(Input(paths[next++], options_.stop));
          line = 0;
          return true;
        },
        options_.stop);
  }

  void read(RowBlock<double>& block, const BlockLimits& limits) {
    const Index columns = features_->columns();
    const Index max_rows = std::clamp<Index>(limits.max_entries / columns, 1, limits.max_rows);
    block.values.resize(static_cast<std::size_t>(max_rows * columns));
    const Index got = features_->next(block.values);
    block.values.resize(static_cast<std::size_t>(got * columns));
    for (Index i = 0; i < got; ++i) block.lines.push_back(++rows_read_);
    if (options_.targets == Targets::none) return;
    block.targets.resize(static_cast<std::size_t>(got));
    (void)targets_->next(block.targets);
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  FileSequence files_;
  std::string path_;
  std::optional<NpyReader> features_;
  std::optional<NpyReader> targets_;
  Index rows_read_ = 0;
  std::optional<RowEncoder> encoder_;
  std::vector<double> raw_;  ///< rows of a block before encoding
  std::vector<std::int64_t> raw_lines_;
};

}  // namespace

std::unique_ptr<RowStream> open_arrays(FeatureMap& map, const RowStreamOptions& options) {
  return std::make_unique<ArrayStream>(map, options);
}

}  // namespace dyad
