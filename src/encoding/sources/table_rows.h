#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "encoding/sources/streams.h"
#include "io/csv.h"

namespace dyad {

/// The rows of csv files, one after the other, as text.
class TableRows {
 public:
  /// `opened` is called behind the header of each file.
  TableRows(const DataOptions& data, char separator, std::function<bool()> stop, std::function<void()> opened)
      : files_(data, std::move(stop)), separator_(separator), opened_(std::move(opened)) {}

  /// Whether a row is waiting, in the next file if need be.
  bool is_waiting(bool may_open_next) {
    while (next_ == text_.rows()) {
      next_ = 0;
      text_.lines.clear();
      if (reader_ && reader_->next(text_)) continue;
      text_.lines.clear();
      if (files_.at_end() || !may_open_next) return false;
      reader_.emplace(files_.next(), separator_);
      opened_();
    }
    return true;
  }

  /// Of the row that is waiting, or of one so many behind it; nullptr where that is not there yet.
  [[nodiscard]] const std::string_view* cells(std::size_t behind = 0) const {
    return next_ + behind < text_.rows() ? text_.cells.data() + (next_ + behind) * text_.columns : nullptr;
  }
  [[nodiscard]] std::int64_t line() const { return text_.lines[next_]; }
  void advance() { ++next_; }

  /// Of the present file; none before the first.
  [[nodiscard]] bool has_file() const { return reader_.has_value(); }
  [[nodiscard]] const std::vector<std::string>& names() const { return reader_->names(); }
  [[nodiscard]] const std::string& path() const { return reader_->path(); }

  /// So many rows or cells of one file, kept.
  TableSample take(Index rows, Index entries = std::numeric_limits<Index>::max()) {
    TableSample sample;
    for (Index taken = 0; static_cast<Index>(sample.rows.size()) < rows && taken < entries; advance()) {
      if (!is_waiting(sample.rows.empty())) break;
      sample.rows.emplace_back(cells(), cells() + text_.columns);
      sample.lines.push_back(line());
      taken += static_cast<Index>(text_.columns);
    }
    return sample;
  }

 private:
  Files files_;
  char separator_;
  std::function<void()> opened_;
  std::optional<CsvReader> reader_;
  CsvBlock text_;
  std::size_t next_ = 0;
};

}  // namespace dyad
