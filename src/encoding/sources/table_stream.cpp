#include <algorithm>
#include <optional>
#include <utility>

#include "encoding/sources/table_rows.h"

namespace dyad {
namespace {

class TableStream : public RowStream {
 public:
  TableStream(FeatureMap& map, const RowStreamOptions& options, char separator)
      : map_(map),
        options_(options),
        separator_(separator),
        rows_(options.data, separator, options.stop, [this] { check_header(); }),
        checks_ignored_(map.is_fixed()) {}

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    if (!map_.is_fixed()) {
      read_first_rows(limits);
      if (sample_.rows.empty()) return;
    }
    std::vector<std::string_view> cells;
    for (; next_sample_ < sample_.rows.size() && !limits.reached_by(block); ++next_sample_) {
      const auto& row = sample_.rows[next_sample_];
      cells.assign(row.begin(), row.end());
      encoder_->encode(cells.data(), sample_.lines[next_sample_], block);
    }
    if (next_sample_ == sample_.rows.size()) {
      sample_ = {};
      next_sample_ = 0;
      for (; !limits.reached_by(block) && rows_.is_waiting(block.count() == 0); rows_.advance()) {
        constexpr std::size_t soon = 8;
        if (const std::string_view* later = rows_.cells(soon); later != nullptr) encoder_->prefetch(later);
        encoder_->encode(rows_.cells(), rows_.line(), block);
      }
    }
    if (rows_.has_file()) block.file = rows_.path();
    RowEncoder::finish(map_, block);
  }

 private:
  void check_header() {
    if (!map_.is_fixed()) return;
    if (std::exchange(checks_ignored_, false))
      require_columns(rows_.names(), options_.columns.ignored, "--ignore", rows_.path());
    open_encoder();
  }

  void open_encoder() { encoder_.emplace(map_, rows_.names(), rows_.path(), options_.targets, options_.unknown); }

  /// A block's worth of rows, kept as text until it is clear what the columns are.
  void read_first_rows(const BlockLimits& limits) {
    sample_ = rows_.take(limits.rows, limits.entries);
    if (sample_.rows.empty()) return;
    make_room(map_, static_cast<Index>(sample_.rows.size()), options_.room);
    fix_table(map_, options_.columns, rows_.names(), sample_, rows_.path(),
              [this](TargetScan& scan) { scan_files(scan); });
    open_encoder();
  }

  /// A file without the column of the target is refused when its turn comes.
  void scan_files(TargetScan& scan) const {
    const DataOptions files = regular_files(options_.data);
    std::ptrdiff_t cell = 0;
    std::optional<TableRows> rows;
    rows.emplace(files, separator_, options_.stop, [&] {
      cell = std::find(rows->names().begin(), rows->names().end(), options_.columns.target) - rows->names().begin();
    });
    scan_targets(
        [&] {
          if (!rows->is_waiting(true)) return false;
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
  TableSample sample_;
  std::size_t next_sample_ = 0;
  bool checks_ignored_;  ///< in the next file: the first one of a resumed run, as fix_table does in a fresh one
};

}  // namespace

std::unique_ptr<RowStream> open_table(FeatureMap& map, const RowStreamOptions& options, char separator) {
  return std::make_unique<TableStream>(map, options, separator);
}

}  // namespace dyad
