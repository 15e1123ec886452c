// Makes the n-th call of a system function fail, in one run of the command per n, and checks the output file:
//   dyad_call_failures DYAD FAILING_CALLS FOLDER [MAX_POSITIONS]
// Each run either succeeds and leaves the complete new file, or reports an error and leaves the old one. At most
// MAX_POSITIONS values of n per command and function are tried, evenly spaced.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "process.h"

namespace dyad::trials {
namespace {

struct CallFailure {
  const char* name;  ///< of the system function
  int error;         ///< errno
  long times;        ///< number of consecutive calls that fail
};

/// Value of CallFailure::times for the failure of all following calls. Above the number of calls of any run.
constexpr long always = 1'000'000'000;
/// Position that no call reaches, so that none fails.
constexpr long never_reached_position = always;

const std::vector<CallFailure> failures{
    {"read", EIO, always},    {"write", ENOSPC, always},  {"fsync", EIO, always},     {"rename", EACCES, always},
    {"linkat", ENOENT, 1},    {"linkat", ENOENT, always}, {"ftruncate", EIO, always}, {"mmap", ENOMEM, 1},
    {"mmap", ENOMEM, always}, {"malloc", ENOMEM, 1}};

/// A command that writes one output file.
struct Trial {
  std::string name;
  std::vector<std::string> arguments;
  std::string old_content{};  ///< of the file before the run
  std::string new_content{};  ///< of the file after a run without a failure
};

/// Runs all trials with all failures at evenly spaced positions.
class CallFailureTrials {
 public:
  CallFailureTrials(std::string dyad, std::string failing_calls, std::string folder, long max_positions)
      : dyad_(std::move(dyad)),
        failing_calls_(std::move(failing_calls)),
        folder_(std::move(folder)),
        output_(folder_ + "/output/file"),
        max_positions_(max_positions) {
    std::filesystem::create_directory(folder_ + "/output");
    const std::string rows = folder_ + "/rows.csv";
    const std::string new_rows = folder_ + "/new_rows.csv";
    const std::string model = folder_ + "/model";
    write_rows(rows, 300);
    write_rows(new_rows, 200);
    require_success({"train", rows, "--target", "y", "-m", model, "--threads", "1"}, "");
    std::vector<std::string> train{"train", rows, "--target", "y", "-m", output_, "--threads", "1"};
    std::vector<std::string> on_disk = train;
    on_disk.insert(on_disk.end(), {"--memory", "30000", "--passes", "2"});
    trials_ = {{"train", train, "old"},
               {"train with rows on disk", on_disk, "old"},
               {"resume", {"train", new_rows, "--resume", "-m", output_, "--threads", "1"}, content(model)},
               {"predict", {"predict", rows, "-m", model, "-o", output_, "--threads", "1"}, "old"},
               {"simulate",
                {"simulate", "gfm", "--dim", "4", "--rank", "1", "--rows", "50", "--format", "csv", "-o", output_},
                "old"}};
    for (Trial& trial : trials_) {
      reset_output(trial.old_content);
      require_success(trial.arguments, trial.name);
      trial.new_content = content(output_);
    }
  }

  void run() {
    for (const Trial& trial : trials_)
      for (const CallFailure& failure : failures) {
        const long count = count_calls(trial, failure);
        const long positions = std::min(count, max_positions_);
        int errors = 0;
        for (long i = 0; i < positions; ++i) errors += fail_at(trial, failure, 1 + i * count / positions) ? 1 : 0;
        std::printf("%-24s %-10s %8ld calls, %4ld runs with a failure, %4d of them exit with an error\n",
                    trial.name.c_str(), failure.name, count, positions, errors);
      }
  }

 private:
  static void write_rows(const std::string& path, int count) {
    std::ofstream file(path);
    file << "a,b,c,y\n";
    for (int i = 0; i < count; ++i)
      file << i % 7 << ',' << i % 11 << ",name" << i % 5 << ',' << (i % 7) * (i % 11) + i % 3 << '\n';
  }

  /// Resets the output folder: one file with this content.
  void reset_output(const std::string& bytes) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/output"))
      std::filesystem::remove(entry.path());
    std::ofstream(output_, std::ios::binary) << bytes;
  }

  [[nodiscard]] ExitStatus execute(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& environment) const {
    std::vector<std::string> command{dyad_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.emplace_back("--quiet");
    return Process(command, {.errors = folder_ + "/errors", .environment = environment}).wait(60);
  }

  void require_success(const std::vector<std::string>& arguments, const std::string& name) const {
    if (execute(arguments, {}).exit_code != 0)
      throw std::runtime_error(name + " fails without an injected failure: " + content(folder_ + "/errors"));
  }

  /// Environment that makes the call at this position (from 1) fail.
  [[nodiscard]] std::vector<std::string> failure_environment(const CallFailure& failure, long position) const {
    return {"LD_PRELOAD=" + failing_calls_,
            std::string("DYAD_FAIL_CALL=") + failure.name,
            "DYAD_FAIL_AT=" + std::to_string(position),
            "DYAD_FAIL_TIMES=" + std::to_string(failure.times),
            "DYAD_FAIL_ERROR=" + std::to_string(failure.error),
            "DYAD_FAIL_REPORT=" + folder_ + "/report"};
  }

  /// Number of calls of the function in a run without a failure.
  long count_calls(const Trial& trial, const CallFailure& failure) const {
    reset_output(trial.old_content);
    const ExitStatus status = execute(trial.arguments, failure_environment(failure, never_reached_position));
    check(trial, failure, 0, status);
    return std::stol(content(folder_ + "/report"));
  }

  /// Returns true if the run exits with an error.
  bool fail_at(const Trial& trial, const CallFailure& failure, long position) const {
    reset_output(trial.old_content);
    const ExitStatus status = execute(trial.arguments, failure_environment(failure, position));
    check(trial, failure, position, status);
    return status.exit_code != 0;
  }

  /// Throws if the exit code, the messages or the output folder violate the guarantee at the top of this file.
  void check(const Trial& trial, const CallFailure& failure, long position, const ExitStatus& status) const {
    const auto require = [&](bool holds, const char* expectation) {
      if (!holds)
        throw std::runtime_error(trial.name + ", " + failure.name + " number " + std::to_string(position) + ": " +
                                 expectation + "\n  exit code " + std::to_string(status.exit_code) + ", signal " +
                                 std::to_string(status.signal) + "\n  " + content(folder_ + "/errors"));
    };
    const std::string result = content(output_);
    // A failed read of the input is a data error.
    const bool has_error =
        status.exit_code == runtime_failure || (status.exit_code == data_error && std::string(failure.name) == "read");
    require(status.exit_code == 0 || has_error, "expected success, exit code 1, or 3 after a failed read");
    require(!has_error || !content(folder_ + "/errors").empty(), "expected a message");
    require(is_complete(trial, result) || (has_error && result == trial.old_content),
            "expected the complete new file or, after an error, the old one");
    const auto files = std::distance(std::filesystem::directory_iterator(folder_ + "/output"), {});
    require(files == 1, "expected no temporary file");
  }

  /// True for the expected content. Training that cannot cache its rows falls back to one pass and writes another valid
  /// model.
  [[nodiscard]] bool is_complete(const Trial& trial, const std::string& bytes) const {
    if (bytes == trial.new_content) return true;
    if (trial.arguments.front() != "train" || bytes == trial.old_content) return false;
    return execute({"inspect", output_, "--verify"}, {}).exit_code == 0;
  }

  std::string dyad_;
  std::string failing_calls_;
  std::string folder_;
  std::string output_;
  long max_positions_;
  std::vector<Trial> trials_;
};

}  // namespace
}  // namespace dyad::trials

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: dyad_call_failures DYAD FAILING_CALLS FOLDER [MAX_POSITIONS]\n");
    return 2;
  }
  try {
    const std::string folder = dyad::trials::new_folder(argv[3]);
    dyad::trials::CallFailureTrials(argv[1], argv[2], folder, argc > 4 ? std::stol(argv[4]) : 10).run();
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
