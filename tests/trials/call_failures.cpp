// Lets every n-th call of a system function fail, one run of the command per n, and checks what is left:
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

struct Call {
  const char* name;
  int error;
  long times;  ///< how often it fails
};

constexpr long always = 1'000'000'000;

const std::vector<Call> calls{{"read", EIO, always},      {"write", ENOSPC, always}, {"fsync", EIO, always},
                              {"rename", EACCES, always}, {"linkat", ENOENT, 1},     {"linkat", ENOENT, always},
                              {"ftruncate", EIO, always}, {"mmap", ENOMEM, 1},       {"mmap", ENOMEM, always},
                              {"malloc", ENOMEM, 1}};

/// A command that writes one file.
struct Trial {
  std::string name;
  std::vector<std::string> arguments;
  std::string old_content{};  ///< of the file before the run
  std::string new_content{};  ///< of the file after a run without a failure
};

class Sweep {
 public:
  Sweep(std::string dyad, std::string failing_calls, std::string folder, long max_positions)
      : dyad_(std::move(dyad)),
        failing_calls_(std::move(failing_calls)),
        folder_(std::move(folder)),
        output_(folder_ + "/output/file"),
        max_positions_(max_positions) {
    std::filesystem::create_directory(folder_ + "/output");
    const std::string rows = folder_ + "/rows.csv";
    const std::string more = folder_ + "/more.csv";
    const std::string model = folder_ + "/model";
    write_rows(rows, 300);
    write_rows(more, 200);
    require_success({"train", rows, "--target", "y", "-m", model, "--threads", "1"}, "");
    std::vector<std::string> train{"train", rows, "--target", "y", "-m", output_, "--threads", "1"};
    std::vector<std::string> on_disk = train;
    on_disk.insert(on_disk.end(), {"--memory", "30000", "--passes", "2"});
    trials_ = {{"train", train, "old"},
               {"train with rows on disk", on_disk, "old"},
               {"resume", {"train", more, "--resume", "-m", output_, "--threads", "1"}, content(model)},
               {"predict", {"predict", rows, "-m", model, "-o", output_, "--threads", "1"}, "old"},
               {"simulate",
                {"simulate", "gfm", "--dim", "4", "--rank", "1", "--rows", "50", "--format", "csv", "-o", output_},
                "old"}};
    for (Trial& trial : trials_) {
      put(trial.old_content);
      require_success(trial.arguments, trial.name);
      trial.new_content = content(output_);
    }
  }

  void run() {
    for (const Trial& trial : trials_)
      for (const Call& call : calls) {
        const long count = count_calls(trial, call);
        const long positions = std::min(count, max_positions_);
        int failed = 0;
        for (long i = 0; i < positions; ++i) failed += fail_at(trial, call, 1 + i * count / positions) ? 1 : 0;
        std::printf("%-24s %-10s %8ld calls, %4ld failed, %4d runs reported it\n", trial.name.c_str(), call.name, count,
                    positions, failed);
      }
  }

 private:
  static void write_rows(const std::string& path, int count) {
    std::ofstream file(path);
    file << "a,b,c,y\n";
    for (int i = 0; i < count; ++i)
      file << i % 7 << ',' << i % 11 << ",name" << i % 5 << ',' << (i % 7) * (i % 11) + i % 3 << '\n';
  }

  void put(const std::string& bytes) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/output"))
      std::filesystem::remove(entry.path());
    std::ofstream(output_, std::ios::binary) << bytes;
  }

  [[nodiscard]] Ending execute(const std::vector<std::string>& arguments,
                               const std::vector<std::string>& environment) const {
    std::vector<std::string> command{dyad_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.emplace_back("--quiet");
    return Process(command, {.errors = folder_ + "/errors", .environment = environment}).wait(60);
  }

  void require_success(const std::vector<std::string>& arguments, const std::string& name) const {
    if (execute(arguments, {}).exit_code != 0)
      throw std::runtime_error(name + " fails without a fault: " + content(folder_ + "/errors"));
  }

  [[nodiscard]] std::vector<std::string> failing(const Call& call, long position) const {
    return {"LD_PRELOAD=" + failing_calls_,
            std::string("DYAD_FAIL_CALL=") + call.name,
            "DYAD_FAIL_AT=" + std::to_string(position),
            "DYAD_FAIL_TIMES=" + std::to_string(call.times),
            "DYAD_FAIL_ERROR=" + std::to_string(call.error),
            "DYAD_FAIL_REPORT=" + folder_ + "/report"};
  }

  long count_calls(const Trial& trial, const Call& call) const {
    put(trial.old_content);
    const Ending ending = execute(trial.arguments, failing(call, always));
    check(trial, call, 0, ending);
    return std::stol(content(folder_ + "/report"));
  }

  /// Whether the run reported the failure.
  bool fail_at(const Trial& trial, const Call& call, long position) const {
    put(trial.old_content);
    const Ending ending = execute(trial.arguments, failing(call, position));
    check(trial, call, position, ending);
    return ending.exit_code != 0;
  }

  void check(const Trial& trial, const Call& call, long position, const Ending& ending) const {
    const auto require = [&](bool holds, const char* what) {
      if (!holds)
        throw std::runtime_error(trial.name + ", " + call.name + " number " + std::to_string(position) + ": " + what +
                                 "\n  exit code " + std::to_string(ending.exit_code) + ", signal " +
                                 std::to_string(ending.signal) + "\n  " + content(folder_ + "/errors"));
    };
    const std::string left = content(output_);
    // A model that cannot be read has an exit code of its own.
    const bool reports = ending.exit_code == 1 || (ending.exit_code == 3 && std::string(call.name) == "read");
    require(ending.exit_code == 0 || reports, "expected success or exit code 1");
    require(!reports || !content(folder_ + "/errors").empty(), "expected a message");
    require(is_complete(trial, left) || (reports && left == trial.old_content),
            "expected the complete new file or, after an error, the old one");
    const auto files = std::distance(std::filesystem::directory_iterator(folder_ + "/output"), {});
    require(files == 1, "expected no temporary file");
  }

  /// Training that cannot keep rows falls back to one pass, which is another complete model.
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
    const std::string folder = dyad::trials::fresh_folder(argv[3]);
    dyad::trials::Sweep(argv[1], argv[2], folder, argc > 4 ? std::stol(argv[4]) : 10).run();
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
