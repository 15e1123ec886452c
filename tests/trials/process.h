#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

/// Trial programs: each runs the command as a child process under faults, failing system calls, adversarial data or
/// long streams, and checks the guarantees of docs/reliability.md.
namespace dyad::trials {

/// Exit codes of dyad, see cli/exit_code.h.
constexpr int runtime_failure = 1;
constexpr int usage_error = 2;
constexpr int data_error = 3;
constexpr int interrupted = 130;

/// Exit status and resource usage of a process.
struct ExitStatus {
  int exit_code = -1;          ///< -1: terminated by a signal
  int signal = 0;              ///< 0: not terminated by a signal
  bool has_timed_out = false;  ///< killed after the time limit of wait()
  double seconds = 0;          ///< wall time
  double peak_bytes = 0;       ///< largest resident set
};

/// Child process with its standard streams redirected to files.
class Process {
 public:
  struct Setup {
    std::string input{};                     ///< path of standard input; empty: /dev/null
    std::string errors = "/dev/null";        ///< path of standard error
    std::string output = "/dev/null";        ///< path of standard output
    std::vector<std::string> environment{};  ///< NAME=VALUE, in addition to the environment of the parent
    std::function<void()> before{};          ///< runs in the child between fork and exec
  };

  Process(const std::vector<std::string>& command, const Setup& setup);

  [[nodiscard]] pid_t id() const { return id_; }
  void signal(int number) const;
  /// Waits for the process to end. Kills it after max_seconds and sets has_timed_out.
  ExitStatus wait(double max_seconds = 600);

 private:
  pid_t id_ = -1;
  double start_ = 0;
};

void sleep_for(double seconds);

/// Creates `parent` if necessary, and a new empty folder with a unique name in it. Returns the path of the new folder.
std::string new_folder(const std::string& parent);

/// Content of a file; empty if the file does not exist.
std::string content(const std::string& path);

}  // namespace dyad::trials
