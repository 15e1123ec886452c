#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dyad::trials {

/// How a process ended.
struct Ending {
  int exit_code = -1;  ///< -1: a signal ended it
  int signal = 0;
  bool was_cut_off = false;  ///< it did not end in time and was killed
  double seconds = 0;
  double peak_bytes = 0;
};

/// A child process. What it writes to standard error lands in a file.
class Process {
 public:
  struct Setup {
    std::string input{};  ///< a file for standard input; empty: nothing
    std::string errors = "/dev/null";
    std::string output = "/dev/null";
    std::vector<std::string> environment{};  ///< NAME=VALUE, besides that of the parent
    std::function<void()> before{};          ///< in the child, before the program starts
  };

  Process(const std::vector<std::string>& command, const Setup& setup);

  [[nodiscard]] pid_t id() const { return id_; }
  void signal(int number) const;
  /// For so long, and then it is killed: what hangs must not go unnoticed.
  Ending wait(double most_seconds = 600);

 private:
  pid_t id_ = -1;
  double start_ = 0;
};

void sleep_for(double seconds);

/// A new folder in this one, which is made if need be: whoever removes it removes nothing else.
std::string fresh_folder(const std::string& parent);

/// All bytes of a file; none where there is no file.
std::string content(const std::string& path);

}  // namespace dyad::trials
