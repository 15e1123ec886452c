#include <dyad/raw_rows.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <dyad/data_error.h>

#include "encoding/sources/table_rows.h"
#include "io/libsvm.h"
#include "io/npy.h"

namespace dyad {

struct RawReader::Source {
  explicit Source(const DataOptions& of) : data(of) {}
  virtual ~Source() = default;
  /// Fills empty rows; none are the end.
  virtual void fill(RawRows& rows) = 0;

  /// For the files.
  [[nodiscard]] std::function<bool()> stop() const {
    return [this] { return interrupted && interrupted(); };
  }

  const DataOptions data;
  std::function<bool()> interrupted{};  ///< of the present call of next()
};

namespace {

class RawTable : public RawReader::Source {
 public:
  RawTable(const DataOptions& of, std::vector<std::string> categorical, char separator, Index most)
      : Source(of),
        rows_(data, separator, stop(), [this] { find_cells(); }),
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
    const NameIndex positions(rows_.names());
    for (const RawColumn& column : columns_) {
      cells_.push_back(positions.find(column.name));
      if (cells_.back() == NameIndex::absent)
        throw std::invalid_argument(rows_.path() + " has no column '" + column.name + "', unlike the file before it");
    }
  }

  /// What the columns hold, from the first rows.
  void decide(const TableSample& sample) {
    require_columns(rows_.names(), categorical_, "categorical", rows_.path());
    const ColumnPatterns categorical(categorical_);
    for (const std::string& name : rows_.names()) {
      ColumnLook look;
      for (const auto& row : sample.rows) look.see(row[columns_.size()]);
      columns_.push_back({.name = name, .is_category = categorical.match(name) || look.is_category()});
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

  TableRows rows_;
  std::vector<std::string> categorical_;
  Index most_;
  std::vector<RawColumn> columns_;  ///< without rows
  std::vector<std::size_t> cells_;  ///< of each column in the present file
};

class RawSparse : public RawReader::Source {
 public:
  RawSparse(const DataOptions& of, Index most) : Source(of), files_(data, stop()), most_(most) {}

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
  Files files_;
  Index most_;
  std::optional<LineReader> reader_;
  LineBlock lines_;
};

class RawArray : public RawReader::Source {
 public:
  RawArray(const DataOptions& of, Index most) : Source(of), files_(data, stop()), most_(most) {
    if (!data.target_paths.empty() && data.target_paths.size() != data.paths.size())
      throw std::invalid_argument("npy needs the targets in arrays of their own, one for each file");
  }

  void fill(RawRows& rows) override {
    while (!features_ || left_ == 0) {
      if (files_.at_end()) return;
      open_next();
    }
    rows.width = features_->columns();
    // Memory grows with the rows that are in the file, not with the number in its header.
    constexpr Index chunk_entries = Index{1} << 19;
    for (const Index count = std::min(most_, left_); rows.count < count;) {
      const Index chunk = std::clamp<Index>(chunk_entries / rows.width, 1, count - rows.count);
      append(*features_, chunk * rows.width, rows.values);
      if (targets_) append(*targets_, chunk, rows.targets);
      rows.count += chunk;
    }
    left_ -= rows.count;
  }

 private:
  static void append(NpyReader& reader, Index count, std::vector<double>& values) {
    const std::size_t before = values.size();
    values.resize(before + static_cast<std::size_t>(count));
    (void)reader.next(std::span(values).subspan(before));
  }

  void open_next() {
    const Input input = files_.next();
    features_.emplace(input, largest_value);
    left_ = features_->rows();
    if (data.target_paths.empty()) return;
    targets_.emplace(files_.target_of_last(), largest_value);
    if (targets_->columns() != 1 || targets_->rows() != left_)
      throw DataError(files_.target_of_last().path, 0, 0,
                      "expected one target for each of the " + std::to_string(left_) + " rows of " + input.path);
  }

  Files files_;
  Index most_;
  std::optional<NpyReader> features_;
  std::optional<NpyReader> targets_;
  Index left_ = 0;
};

std::unique_ptr<RawReader::Source> open_raw(const DataOptions& data, std::vector<std::string> categorical, Index most) {
  if (most < 1) throw std::invalid_argument("a block needs at least one row");
  const Format format = data.format_of_all();
  data.limits.validate();
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

bool RawReader::next(RawRows& rows, const std::function<bool()>& interrupted) {
  rows = {};
  source_->interrupted = interrupted;
  try {
    source_->fill(rows);
  } catch (const ReadingStopped&) {
    throw std::runtime_error("the reading was interrupted");
  }
  return rows.count > 0;
}

}  // namespace dyad
