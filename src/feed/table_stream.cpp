#include <optional>

#include "feed/streams.h"
#include "source/csv.h"

namespace dyad {
namespace {

class TableStream : public RowStream {
 public:
  TableStream(FeatureMap& map, const RowStreamOptions& options, char separator)
      : map_(map), options_(options), files_(options.data, options.stop), separator_(separator) {}

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
      while (!limits.reached_by(block) && more_rows(block.count() == 0)) {
        constexpr std::size_t soon = 8;
        if (next_row_ + soon < text_.rows())
          encoder_->prefetch(text_.cells.data() + (next_row_ + soon) * text_.columns);
        encoder_->encode(text_.cells.data() + next_row_ * text_.columns, text_.lines[next_row_], block);
        ++next_row_;
      }
    }
    if (reader_) block.file = reader_->path();
    RowBuilder::finish(map_, block);
  }

 private:
  /// Whether a row is waiting, in the next file if need be.
  bool more_rows(bool may_open_next) {
    while (next_row_ == text_.rows()) {
      next_row_ = 0;
      text_.lines.clear();
      if (reader_ && reader_->next(text_)) continue;
      text_.lines.clear();
      if (files_.at_end() || !may_open_next) return false;
      reader_.emplace(files_.next(), separator_);
      if (map_.is_fixed()) open_encoder();
    }
    return true;
  }

  void open_encoder() { encoder_.emplace(map_, reader_->names(), reader_->path(), options_.targets, options_.unknown); }

  /// A block's worth of rows, kept as text until it is clear what the columns are.
  void read_first_rows(const BlockLimits& limits) {
    Index entries = 0;
    while (more_rows(sample_.rows.empty()) && static_cast<Index>(sample_.rows.size()) < limits.rows &&
           entries < limits.entries) {
      const auto row = text_.cells.begin() + static_cast<std::ptrdiff_t>(next_row_ * text_.columns);
      sample_.rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(text_.columns));
      sample_.lines.push_back(text_.lines[next_row_++]);
      entries += static_cast<Index>(text_.columns);
    }
    if (sample_.rows.empty()) return;
    make_room(map_, static_cast<Index>(sample_.rows.size()), options_.room);
    fix_table(map_, options_.columns, reader_->names(), sample_, reader_->path());
    open_encoder();
  }

  FeatureMap& map_;
  RowStreamOptions options_;
  Files files_;
  char separator_;
  std::optional<CsvReader> reader_;
  std::optional<TableEncoder> encoder_;
  CsvBlock text_;
  std::size_t next_row_ = 0;
  TableSample sample_;
  std::size_t next_sample_ = 0;
};

}  // namespace

std::unique_ptr<RowStream> open_table(FeatureMap& map, const RowStreamOptions& options, char separator) {
  return std::make_unique<TableStream>(map, options, separator);
}

}  // namespace dyad
