#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace dyad {

/// A file that appears under its name only when it is complete: it is written beside it and renamed. "-" is standard
/// output. Every failure throws std::runtime_error with the name and the reason.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);

  /// Without it nothing is left behind, and what was there before stays.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::string temporary_;  ///< empty for standard output
  std::FILE* file_ = nullptr;
};

}  // namespace dyad
