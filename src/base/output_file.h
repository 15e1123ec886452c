#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace dyad {

/// A file that appears under its name only when it is complete and on the disk: it is written without a name where the
/// file system can do that, so that a killed process leaves nothing behind, and else beside it; then it is renamed. A
/// link stays a link, and a file keeps its permissions. "-" is standard output; that, pipes and devices are written
/// directly. Every failure throws std::runtime_error with the name and the reason.
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
  int open_temporary();
  void give_name();
  [[noreturn]] void fail(const char* what) const;

  std::string path_;       ///< as given
  std::string target_;     ///< what it stands for, links followed
  std::string temporary_;  ///< empty while the file has no name, and where the target is written directly
  bool has_no_name_ = false;
  std::FILE* file_ = nullptr;
};

/// Whether two names lead to one file.
bool is_same_file(const std::string& a, const std::string& b);

}  // namespace dyad
