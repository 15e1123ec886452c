#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace dyad {

/// Data that cannot be what it claims to be: names the file, the place in it, and what was expected there.
class DataError : public std::runtime_error {
 public:
  /// Lines and columns count from 1; 0: not known.
  DataError(const std::string& file, std::int64_t line, std::int64_t column, const std::string& what_was_expected);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] std::int64_t line() const { return line_; }
  [[nodiscard]] std::int64_t column() const { return column_; }

 private:
  std::string file_;
  std::int64_t line_;
  std::int64_t column_;
};

}  // namespace dyad
