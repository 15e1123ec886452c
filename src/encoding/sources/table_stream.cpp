#include <algorithm>
#include <optional>
#include <utility>

#include "encoding/sources/table_rows.h"

namespace dyad {
namespace {

/// Rows of csv and tsv files.
class TableStream : public RowStream {
 public:
  TableStream(FeatureMap& map, const RowStreamOptions& options, char separator)
      : map_(map),
        options_(options),
        separator_(separator),
        rows_(options.data, separator, options.stop, [this] { on_open(); }),
        checks_ignored_(map.is_fitted()) {}

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    if (!map_.is_fitted()) {
      read_first_rows(limits);
      if (sample_.rows.empty()) return;
    }
    std::vector<std::string_view> cells;
    for (; next_sample_ < sample_.rows.size() && !limits.are_reached_by(block); ++next_sample_) {
      const auto& row = sample_.rows[next_sample_];
      cells.assign(row.begin(), row.end());
      encoder_->encode(cells.data(), sample_.lines[next_sample_], block);
    }
    if (next_sample_ == sample_.rows.size()) {
      sample_ = {};
      next_sample_ = 0;
      for (; !limits.are_reached_by(block) && rows_.has_row(block.count() == 0); rows_.advance()) {
        // Rows between prefetch and lookup. Sensitivity: docs/constants.md.
        constexpr std::size_t prefetch_distance_rows = 8;
        if (const std::string_view* later = rows_.cells(prefetch_distance_rows); later != nullptr)
          encoder_->prefetch(later);
        encoder_->encode(rows_.cells(), rows_.line(), block);
      }
    }
    if (rows_.has_file()) block.file = rows_.path();
    RowEncoder::finish(map_, block);
  }

 private:
  /// Checks the header of a new file and creates its encoder. No effect for the first file of a map that is not fitted:
  /// fit_table() checks it.
  void on_open() {
    if (!map_.is_fitted()) return;
    if (std::exchange(checks_ignored_, false))
      require_columns(rows_.names(), options_.columns.ignored, "ColumnOptions::ignored", rows_.path());
    open_encoder();
  }

  void open_encoder() { encoder_.emplace(map_, rows_.names(), rows_.path(), options_.targets, options_.unknown); }

  /// Reads the rows of one block as text and determines the columns from them.
  void read_first_rows(const BlockLimits& limits) {
    sample_ = rows_.take(limits.max_rows, limits.max_entries);
    if (sample_.rows.empty()) return;
    set_min_feature_count(map_, static_cast<Index>(sample_.rows.size()), options_.min_feature_count);
    fit_table(map_, options_.columns, rows_.names(), sample_, rows_.path(),
              [this](TargetScan& scan) { scan_files(scan); });
    open_encoder();
  }

  /// Adds the targets of all regular files. Skips files without the target column, which fill() rejects later.
  void scan_files(TargetScan& scan) const {
    const DataOptions files = regular_files(options_.data);
    std::ptrdiff_t cell = 0;
    std::optional<TableRows> rows;
    rows.emplace(files, separator_, options_.stop, [&] {
      cell = std::find(rows->names().begin(), rows->names().end(), options_.columns.target) - rows->names().begin();
    });
    scan_targets(
        [&] {
          if (!rows->has_row(true)) return false;
          if (cell < std::ssize(rows->names()))
            scan.add(Target::Sample(rows->cells()[cell], rows->line(), &rows->path()));
          rows->advance();
          return true;
        },
        options_.stop);
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  char separator_;
  TableRows rows_;
  std::optional<TableEncoder> encoder_;
  TableSample sample_;           ///< the rows of read_first_rows() that are not encoded yet
  std::size_t next_sample_ = 0;  ///< the first of them
  bool checks_ignored_;  ///< on_open() checks the ignored columns; true until the first file if the map is fitted
};

}  // namespace

std::unique_ptr<RowStream> open_table(FeatureMap& map, const RowStreamOptions& options, char separator) {
  return std::make_unique<TableStream>(map, options, separator);
}

}  // namespace dyad
