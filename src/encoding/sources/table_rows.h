#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "encoding/sources/streams.h"
#include "io/csv.h"

namespace dyad {

/// Sequential rows of several csv files as text. Does not own the DataOptions.
class TableRows {
 public:
  /// `on_open` is called after the header of each file has been read.
  TableRows(const DataOptions& data, char separator, std::function<bool()> stop, std::function<void()> on_open)
      : files_(data, std::move(stop)), separator_(separator), on_open_(std::move(on_open)) {}

  /// True if there is a current row. Opens the next file at the end of one if `may_open_next` is true.
  bool has_row(bool may_open_next) {
    while (next_ == text_.rows()) {
      next_ = 0;
      text_.lines.clear();
      if (reader_ && reader_->next(text_)) continue;
      text_.lines.clear();
      if (files_.at_end() || !may_open_next) return false;
      reader_.emplace(files_.next(), separator_);
      on_open_();
    }
    return true;
  }

  /// Cells of the current row.
  [[nodiscard]] const std::string_view* cells() const { return text_.cells.data() + next_ * text_.columns; }
  /// Line number of the current row in its file.
  [[nodiscard]] std::int64_t line() const { return text_.lines[next_]; }
  void advance() { ++next_; }

  /// False before the first file has been opened. names() and path() refer to the current file.
  [[nodiscard]] bool has_file() const { return reader_.has_value(); }
  [[nodiscard]] const std::vector<std::string>& names() const { return reader_->names(); }
  [[nodiscard]] const std::string& path() const { return reader_->path(); }

  /// Copies rows of one file and advances past them, until `max_rows` rows or at least `max_cells` cells are copied.
  TableSample take(Index max_rows, Index max_cells = std::numeric_limits<Index>::max()) {
    TableSample sample;
    for (Index cell_count = 0; static_cast<Index>(sample.rows.size()) < max_rows && cell_count < max_cells; advance()) {
      if (!has_row(sample.rows.empty())) break;
      sample.rows.emplace_back(cells(), cells() + text_.columns);
      sample.lines.push_back(line());
      cell_count += static_cast<Index>(text_.columns);
    }
    return sample;
  }

 private:
  FileSequence files_;
  char separator_;
  std::function<void()> on_open_;
  std::optional<CsvReader> reader_;
  CsvBlock text_;
  std::size_t next_ = 0;  ///< the current row in `text_`
};

}  // namespace dyad
