#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace dyad {

/// Invalid content of an input: a file of rows, rows in memory, a model file, or a request or response of distributed
/// training. The text of the error has the form `file, line L, column C: expected ...`.
///
/// Misuse of the API, such as an option outside its range, throws std::invalid_argument instead. A file that cannot be
/// read or written throws std::runtime_error.
class DataError : public std::runtime_error {
 public:
  /// \param file      name of the input
  /// \param line      line or row, counted from 1; 0 if unknown
  /// \param column    column, counted from 1; 0 if unknown
  /// \param expected  message: the expected content and the content found
  DataError(const std::string& file, std::int64_t line, std::int64_t column, const std::string& expected);

  /// Name of the input.
  [[nodiscard]] const std::string& file() const { return file_; }
  /// Line or row, counted from 1; 0 if unknown.
  [[nodiscard]] std::int64_t line() const { return line_; }
  /// Column, counted from 1; 0 if unknown.
  [[nodiscard]] std::int64_t column() const { return column_; }

 private:
  std::string file_;
  std::int64_t line_;
  std::int64_t column_;
};

}  // namespace dyad
