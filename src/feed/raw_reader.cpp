#include <dyad/raw_rows.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <dyad/data_error.h>

#include "features/table.h"
#include "feed/streams.h"
#include "source/csv.h"
#include "source/libsvm.h"
#include "source/npy.h"

namespace dyad {

struct RawReader::Source {
  virtual ~Source() = default;
  /// Fills empty rows; none are the end.
  virtual void fill(RawRows& rows) = 0;
};

namespace {

class RawTable : public RawReader::Source {
 public:
  RawTable(DataOptions data, std::vector<std::string> categorical, char separator, Index most)
      : data_(std::move(data)),
        files_(data_, nullptr),
        categorical_(std::move(categorical)),
        separator_(separator),
        most_(most) {}

  void fill(RawRows& rows) override {
    if (columns_.empty()) decide();
    rows.columns = columns_;
    std::vector<Codes> codes(columns_.size());
    std::vector<std::string_view> cells;
    for (; next_sample_ < sample_.rows.size(); ++next_sample_, ++rows.count) {
      cells.assign(sample_.rows[next_sample_].begin(), sample_.rows[next_sample_].end());
      append(cells.data(), sample_.lines[next_sample_], rows, codes);
    }
    sample_ = {};
    next_sample_ = 0;
    for (; rows.count < most_ && more_rows(rows.count == 0); ++next_row_, ++rows.count)
      append(text_.cells.data() + next_row_ * text_.columns, text_.lines[next_row_], rows, codes);
  }

 private:
  using Codes = std::unordered_map<std::string, std::int32_t>;

  bool more_rows(bool may_open_next) {
    while (next_row_ == text_.rows()) {
      next_row_ = 0;
      text_.lines.clear();
      if (reader_ && reader_->next(text_)) continue;
      text_.lines.clear();
      if (files_.at_end() || !may_open_next) return false;
      reader_.emplace(files_.next(), separator_);
      find_cells();
    }
    return true;
  }

  /// Where the columns stand in this file.
  void find_cells() {
    cells_.clear();
    for (const RawColumn& column : columns_) {
      const auto& names = reader_->names();
      const auto found = std::find(names.begin(), names.end(), column.name);
      if (found == names.end())
        throw std::invalid_argument(reader_->path() + " has no column '" + column.name +
                                    "', unlike the file before it");
      cells_.push_back(static_cast<std::size_t>(found - names.begin()));
    }
  }

  void decide() {
    while (static_cast<Index>(sample_.rows.size()) < most_ && more_rows(sample_.rows.empty())) {
      const auto row = text_.cells.begin() + static_cast<std::ptrdiff_t>(next_row_ * text_.columns);
      sample_.rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(text_.columns));
      sample_.lines.push_back(text_.lines[next_row_++]);
    }
    if (!reader_) return;
    for (const std::string& pattern : categorical_)
      if (std::none_of(reader_->names().begin(), reader_->names().end(),
                       [&](const std::string& name) { return is_meant(pattern, name); }))
        throw std::invalid_argument(reader_->path() + " has no column '" + pattern + "', which categorical names");
    for (const std::string& name : reader_->names()) {
      ColumnLook look;
      for (const auto& row : sample_.rows) look.see(row[columns_.size()]);
      const bool is_given = std::any_of(categorical_.begin(), categorical_.end(),
                                        [&](const std::string& pattern) { return is_meant(pattern, name); });
      columns_.push_back({.name = name, .is_category = is_given || look.is_category()});
    }
    find_cells();
  }

  void append(const std::string_view* cells, std::int64_t line, RawRows& rows, std::vector<Codes>& codes) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      RawColumn& column = rows.columns[c];
      const std::string_view cell = cells[cells_[c]];
      if (!column.is_category) {
        const Place place{reader_->path(), line, static_cast<std::int64_t>(cells_[c]) + 1};
        column.numbers.push_back(number_in(cell, column.name, place, true));
      } else if (is_missing(cell)) {
        column.codes.push_back(-1);
      } else {
        const auto [found, is_new] =
            codes[c].try_emplace(std::string(cell), static_cast<std::int32_t>(column.categories.size()));
        if (is_new) column.categories.push_back(found->first);
        column.codes.push_back(found->second);
      }
    }
  }

  DataOptions data_;
  Files files_;
  std::vector<std::string> categorical_;
  char separator_;
  Index most_;
  std::optional<CsvReader> reader_;
  std::vector<RawColumn> columns_;  ///< without rows
  std::vector<std::size_t> cells_;  ///< of each column in the present file
  CsvBlock text_;
  std::size_t next_row_ = 0;
  TableSample sample_;
  std::size_t next_sample_ = 0;
};

class RawSparse : public RawReader::Source {
 public:
  RawSparse(DataOptions data, Index most) : data_(std::move(data)), files_(data_, nullptr), most_(most) {}

  void fill(RawRows& rows) override {
    const BlockLimits limits{most_, std::numeric_limits<Index>::max()};
    RowBlock<double> block;
    while (!limits.reached_by(block)) {
      if (lines_.text.empty() && !(reader_ && reader_->next(lines_))) {
        if (files_.at_end()) break;
        reader_.emplace(files_.next());
        continue;
      }
      parse_libsvm(lines_, reader_->path(), limits, block);
    }
    rows.count = block.count();
    const auto largest = std::max_element(block.columns.begin(), block.columns.end());
    rows.width = largest == block.columns.end() ? 0 : Index{*largest} + 1;
    rows.offsets = std::move(block.offsets);
    rows.indices = std::move(block.columns);
    rows.values = std::move(block.values);
    rows.targets = std::move(block.targets);
  }

 private:
  DataOptions data_;
  Files files_;
  Index most_;
  std::optional<LineReader> reader_;
  LineBlock lines_;
};

class RawArray : public RawReader::Source {
 public:
  RawArray(DataOptions data, Index most) : data_(std::move(data)), files_(data_, nullptr), most_(most) {
    if (!data_.target_paths.empty() && data_.target_paths.size() != data_.paths.size())
      throw std::invalid_argument("npy needs the targets in arrays of their own, one for each file");
  }

  void fill(RawRows& rows) override {
    while (!features_ || left_ == 0) {
      if (files_.at_end()) return;
      open_next();
    }
    rows.count = std::min(most_, left_);
    rows.width = features_->columns();
    rows.values.resize(static_cast<std::size_t>(rows.count * rows.width));
    (void)features_->next(rows.values);
    left_ -= rows.count;
    if (!targets_) return;
    rows.targets.resize(static_cast<std::size_t>(rows.count));
    (void)targets_->next(rows.targets);
  }

 private:
  void open_next() {
    const Input input = files_.next();
    features_.emplace(input, largest_value);
    left_ = features_->rows();
    if (data_.target_paths.empty()) return;
    targets_.emplace(files_.target_of_last(), largest_value);
    if (targets_->columns() != 1 || targets_->rows() != left_)
      throw DataError(files_.target_of_last().path, 0, 0,
                      "expected one target for each of the " + std::to_string(left_) + " rows of " + input.path);
  }

  DataOptions data_;
  Files files_;
  Index most_;
  std::optional<NpyReader> features_;
  std::optional<NpyReader> targets_;
  Index left_ = 0;
};

std::unique_ptr<RawReader::Source> open_raw(const DataOptions& data, std::vector<std::string> categorical, Index most) {
  if (most < 1) throw std::invalid_argument("a block needs at least one row");
  const Format format = data.format_of_all();
  if (format == Format::csv || format == Format::tsv)
    return std::make_unique<RawTable>(data, std::move(categorical), format == Format::csv ? ',' : '\t', most);
  if (!categorical.empty()) throw std::invalid_argument("categorical is for columns of csv and tsv, which have names");
  if (format == Format::libsvm) return std::make_unique<RawSparse>(data, most);
  return std::make_unique<RawArray>(data, most);
}

}  // namespace

RawReader::RawReader(const DataOptions& data, std::vector<std::string> categorical, Index rows_per_block)
    : source_(open_raw(data, std::move(categorical), rows_per_block)) {}
RawReader::~RawReader() = default;
RawReader::RawReader(RawReader&&) noexcept = default;
RawReader& RawReader::operator=(RawReader&&) noexcept = default;

bool RawReader::next(RawRows& rows) {
  rows = {};
  source_->fill(rows);
  return rows.count > 0;
}

}  // namespace dyad
