#include <dyad/raw_rows.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <dyad/data_error.h>

#include "feed/table_rows.h"
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
        rows_(data_, separator, nullptr, [this] { find_cells(); }),
        categorical_(std::move(categorical)),
        most_(most) {}

  void fill(RawRows& rows) override {
    TableSample sample;
    if (columns_.empty()) {
      sample = rows_.take(most_);
      if (rows_.has_file()) decide(sample);
    }
    rows.columns = columns_;
    std::vector<Codes> codes(columns_.size());
    std::vector<std::string_view> cells;
    for (std::size_t i = 0; i < sample.rows.size(); ++i, ++rows.count) {
      cells.assign(sample.rows[i].begin(), sample.rows[i].end());
      append(cells.data(), sample.lines[i], rows, codes);
    }
    for (; rows.count < most_ && rows_.is_waiting(rows.count == 0); rows_.advance(), ++rows.count)
      append(rows_.cells(), rows_.line(), rows, codes);
  }

 private:
  using Codes = std::unordered_map<std::string, std::int32_t>;

  /// Where the columns stand in this file.
  void find_cells() {
    cells_.clear();
    for (const RawColumn& column : columns_) {
      const auto& names = rows_.names();
      const auto found = std::find(names.begin(), names.end(), column.name);
      if (found == names.end())
        throw std::invalid_argument(rows_.path() + " has no column '" + column.name + "', unlike the file before it");
      cells_.push_back(static_cast<std::size_t>(found - names.begin()));
    }
  }

  /// What the columns hold, from the first rows.
  void decide(const TableSample& sample) {
    const auto& names = rows_.names();
    for (const std::string& pattern : categorical_)
      if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return is_meant(pattern, name); }))
        throw std::invalid_argument(rows_.path() + " has no column '" + pattern + "', which categorical names");
    for (const std::string& name : names) {
      ColumnLook look;
      for (const auto& row : sample.rows) look.see(row[columns_.size()]);
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
        const Place place{rows_.path(), line, static_cast<std::int64_t>(cells_[c]) + 1};
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
  TableRows rows_;
  std::vector<std::string> categorical_;
  Index most_;
  std::vector<RawColumn> columns_;  ///< without rows
  std::vector<std::size_t> cells_;  ///< of each column in the present file
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
