#include <dyad/dataset.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <dyad/error.h>

#include "encoding/sources/table_rows.h"
#include "io/libsvm.h"
#include "io/npy.h"

namespace dyad {

/// Base class of the readers of one file format each. Owns a copy of the options.
struct RawReader::Source {
  explicit Source(const DataOptions& options) : data(options) {}
  virtual ~Source() = default;
  /// Appends the next rows to an empty object. No rows: the end.
  virtual void fill(RawRows& rows) = 0;

  /// Stop request for reading files (Input::stop): true if the current call of next() is interrupted.
  [[nodiscard]] std::function<bool()> stop() const {
    return [this] { return interrupted && interrupted(); };
  }

  const DataOptions data;
  std::function<bool()> interrupted{};  ///< argument of the current call of next()
};

namespace {

/// csv and tsv files.
class RawTable : public RawReader::Source {
 public:
  RawTable(const DataOptions& options, std::vector<std::string> categorical, char separator, Index max_rows)
      : Source(options),
        rows_(data, separator, stop(), [this] { find_cells(); }),
        categorical_(std::move(categorical)),
        max_rows_(max_rows) {}

  void fill(RawRows& rows) override {
    TableSample sample;
    if (columns_.empty()) {
      sample = rows_.take(max_rows_);
      if (rows_.has_file()) infer_columns(sample);
    }
    rows.columns = columns_;
    std::vector<Codes> codes(columns_.size());
    std::vector<std::string_view> cells;
    for (std::size_t i = 0; i < sample.rows.size(); ++i, ++rows.count) {
      cells.assign(sample.rows[i].begin(), sample.rows[i].end());
      append(cells.data(), sample.lines[i], rows, codes);
    }
    for (; rows.count < max_rows_ && rows_.has_row(rows.count == 0); rows_.advance(), ++rows.count)
      append(rows_.cells(), rows_.line(), rows, codes);
  }

 private:
  using Codes = std::unordered_map<std::string, std::int32_t>;

  /// Finds the columns of the first file in the current one.
  void find_cells() {
    cells_.clear();
    const NameIndex positions(rows_.names());
    for (const RawColumn& column : columns_) {
      cells_.push_back(positions.find(column.name));
      if (cells_.back() == NameIndex::absent)
        throw std::invalid_argument(rows_.path() + " has no column '" + column.name + "', which the first file has");
    }
  }

  /// Determines the roles of the columns from the first rows.
  void infer_columns(const TableSample& sample) {
    require_columns(rows_.names(), categorical_, "categorical", rows_.path());
    const ColumnPatterns categorical(categorical_);
    for (const std::string& name : rows_.names()) {
      ColumnProfile profile;
      for (const auto& row : sample.rows) profile.add(row[columns_.size()]);
      columns_.push_back({.name = name, .is_categorical = categorical.matches(name) || profile.is_categorical()});
    }
    find_cells();
  }

  void append(const std::string_view* cells, std::int64_t line, RawRows& rows, std::vector<Codes>& codes) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      RawColumn& column = rows.columns[c];
      const std::string_view cell = cells[cells_[c]];
      if (!column.is_categorical) {
        const InputLocation location{rows_.path(), line, static_cast<std::int64_t>(cells_[c]) + 1};
        column.numbers.push_back(parse_numeric_cell(cell, column.name, location, true));
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
  Index max_rows_;
  std::vector<RawColumn> columns_;  ///< names and roles, without values
  std::vector<std::size_t> cells_;  ///< position of each column in the current file
};

/// libsvm files.
class RawSparse : public RawReader::Source {
 public:
  RawSparse(const DataOptions& options, Index max_rows) : Source(options), files_(data, stop()), max_rows_(max_rows) {}

  void fill(RawRows& rows) override {
    const BlockLimits limits{max_rows_, std::numeric_limits<Index>::max()};
    RowBlock<double> block;
    while (!limits.are_reached_by(block)) {
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
  FileSequence files_;
  Index max_rows_;
  std::optional<LineReader> reader_;
  LineBlock lines_;
};

/// npy files.
class RawArray : public RawReader::Source {
 public:
  RawArray(const DataOptions& options, Index max_rows) : Source(options), files_(data, stop()), max_rows_(max_rows) {
    if (!data.target_paths.empty() && data.target_paths.size() != data.paths.size())
      throw std::invalid_argument("npy needs one array of targets for each file, got " +
                                  std::to_string(data.target_paths.size()) + " for " +
                                  std::to_string(data.paths.size()) + " files");
  }

  void fill(RawRows& rows) override {
    while (!features_ || rows_left_ == 0) {
      if (files_.at_end()) return;
      open_next();
    }
    rows.width = features_->columns();
    // Reads in chunks, so that memory grows with the rows of the file, not with the number of rows in its header.
    constexpr Index chunk_entries = Index{1} << 19;  // 4 MiB
    for (const Index count = std::min(max_rows_, rows_left_); rows.count < count;) {
      const Index chunk = std::clamp<Index>(chunk_entries / rows.width, 1, count - rows.count);
      append(*features_, chunk * rows.width, rows.values);
      if (targets_) append(*targets_, chunk, rows.targets);
      rows.count += chunk;
    }
    rows_left_ -= rows.count;
  }

 private:
  static void append(NpyReader& reader, Index count, std::vector<double>& values) {
    const std::size_t before = values.size();
    values.resize(before + static_cast<std::size_t>(count));
    (void)reader.next(std::span(values).subspan(before));
  }

  void open_next() {
    const Input input = files_.next();
    features_.emplace(input, max_abs_value);
    rows_left_ = features_->rows();
    if (data.target_paths.empty()) return;
    targets_.emplace(files_.current_targets(), max_abs_value);
    if (targets_->columns() != 1 || targets_->rows() != rows_left_)
      throw DataError(files_.current_targets().path, 0, 0,
                      "expected one target for each of the " + std::to_string(rows_left_) + " rows of " + input.path);
  }

  FileSequence files_;
  Index max_rows_;
  std::optional<NpyReader> features_;
  std::optional<NpyReader> targets_;
  Index rows_left_ = 0;
};

std::unique_ptr<RawReader::Source> open_raw(const DataOptions& data, std::vector<std::string> categorical,
                                            Index max_rows) {
  if (max_rows < 1) throw std::invalid_argument("rows_per_block must be at least 1, got " + std::to_string(max_rows));
  const Format format = data.resolve_format();
  data.limits.validate();
  if (format == Format::csv || format == Format::tsv)
    return std::make_unique<RawTable>(data, std::move(categorical), format == Format::csv ? ',' : '\t', max_rows);
  if (!categorical.empty())
    throw std::invalid_argument("categorical is for csv and tsv files, whose columns have names");
  if (format == Format::libsvm) return std::make_unique<RawSparse>(data, max_rows);
  return std::make_unique<RawArray>(data, max_rows);
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
