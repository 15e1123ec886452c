// Trains every solver on every adversarial stream: dyad_hostile DYAD FOLDER [FRACTION [NAME]]
// Each run gives a finite model and finite predictions, or rejects the stream with a message, in bounded memory and
// time. FRACTION of the rows is used (default 1), for slow builds. NAME restricts the streams to those whose name
// contains it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "hostile_streams.h"
#include "process.h"

namespace dyad::trials {
namespace {

/// Options of `train`, by the name used in HostileStream::solvers.
const std::map<std::string, std::vector<std::string>> solvers{
    {"auto", {}},
    {"auto, no memory, single", {"--memory", "0", "--precision", "single"}},
    {"kalman", {"--solver", "kalman"}},
    {"kalman, forgetting", {"--solver", "kalman", "--forget", "100"}},
    {"moment", {"--solver", "moment", "--batch", "200"}},
    {"newton", {"--solver", "newton"}},
    {"variational", {"--solver", "variational"}}};

#ifdef DYAD_SANITIZED
constexpr double time_factor = 10;  // of builds with sanitizers
#else
constexpr double time_factor = 1;
#endif
/// Time limit of a run, about three times the longest one in docs/reliability.md.
constexpr double max_seconds = 60 * time_factor;
/// Memory limit of a run: a million features with their variances in nine filters, and a copy of them for saving.
constexpr double max_bytes = 3.5e9;

class HostileTrials {
 public:
  HostileTrials(std::string dyad, std::string folder, double row_fraction)
      : dyad_(std::move(dyad)), folder_(std::move(folder)), row_fraction_(row_fraction) {}

  void run(const HostileStream& stream) {
    rows_ = std::max(4, static_cast<int>(row_fraction_ * stream.rows));
    {
      std::ofstream file(folder_ + "/rows", std::ios::binary);
      stream.write(file, rows_);
    }
    const int models_before = models_;
    for (const auto& [solver, options] : solvers) {
      if (!stream.solvers.empty() &&
          std::find(stream.solvers.begin(), stream.solvers.end(), solver) == stream.solvers.end())
        continue;
      trial_ = stream.name + ", " + solver;
      std::vector<std::string> all_options = stream.options;
      all_options.insert(all_options.end(), options.begin(), options.end());
      train(stream, all_options);
    }
    trial_ = stream.name;
    require(models_ > models_before || stream.expected != Expected::learned, "at least one solver learns the stream");
  }

  /// Prints the totals. Returns true if no property was violated.
  [[nodiscard]] bool report() const {
    std::printf("%d models, %d rejected streams, %d violated properties; at most %.1f s and %.0f MB\n", models_,
                rejections_, violations_, longest_seconds_, largest_peak_bytes_ / 1e6);
    return violations_ == 0;
  }

 private:
  void train(const HostileStream& stream, const std::vector<std::string>& options) {
    const std::string rows = folder_ + "/rows";
    const std::string model = folder_ + "/model";
    std::filesystem::remove(model);
    std::vector<std::string> command{"train", rows, "--format", stream.format, "-m", model, "--json", "--quiet"};
    command.insert(command.end(), options.begin(), options.end());
    const int code = dyad(command);
    if (stream.expected == Expected::out_of_memory ? code == runtime_failure
                                                   : code == usage_error || code == data_error) {
      ++rejections_;
      require(!content(folder_ + "/errors").empty(), "a rejected stream has a message");
      return;
    }
    if (!require(code == 0, "a stream is learned or rejected")) return;
    ++models_;
    require(stream.expected == Expected::learned, "the stream is rejected");
    const auto summary = nlohmann::json::parse(content(folder_ + "/out"), nullptr, false);
    if (!require(summary.is_object() && summary.value("rows", 0) == rows_, "all rows are learned")) return;
    // The solver anova does not predict rows before it learns them.
    const bool has_progressive = summary.at("solver") != "anova";
    for (const std::string which : {"metrics", "progressive"})
      for (const auto& [name, value] : summary.at(which).items())
        require(value.is_number() || (which == "progressive" && !has_progressive) ||
                    (value.is_null() && !summary.at("warnings").empty()),
                "the metric " + name + " is a number, or null with a warning");
    predict(stream.format, model, {});
    if (std::find(options.begin(), options.end(), "moment") == options.end()) predict(stream.format, model, {"--std"});
  }

  void predict(const std::string& format, const std::string& model, const std::vector<std::string>& options) {
    std::vector<std::string> command{"predict", "-m", model, folder_ + "/rows", "--format", format, "--quiet"};
    command.insert(command.end(), options.begin(), options.end());
    const int code = dyad(command);
    // The standard deviation of a row far outside of the training data may overflow, which is an error.
    if (code == data_error && !options.empty()) return;
    if (!require(code == 0, "the training rows are predicted")) return;
    std::istringstream lines(content(folder_ + "/out"));
    int count = 0;
    bool are_finite = true;
    for (std::string line; std::getline(lines, line); ++count) {
      std::replace(line.begin(), line.end(), ',', ' ');
      std::istringstream words(line);
      for (std::string word; words >> word;)
        are_finite = are_finite && std::isfinite(std::strtod(word.c_str(), nullptr));
    }
    require(are_finite, "predictions are finite");
    require(count == rows_, "every row has a prediction");
  }

  /// Runs the command within the limits and returns its exit code.
  int dyad(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), dyad_);
    Process process(arguments, {.errors = folder_ + "/errors", .output = folder_ + "/out"});
    const ExitStatus status = process.wait(max_seconds);
    require(!status.has_timed_out, "time is bounded");
    require(status.signal == 0 || status.has_timed_out, "no signal terminates the process");
    // The memory limit applies to runs with all rows.
    require(row_fraction_ < 1 || status.peak_bytes <= max_bytes, "memory is bounded");
    longest_seconds_ = std::max(longest_seconds_, status.seconds);
    largest_peak_bytes_ = std::max(largest_peak_bytes_, status.peak_bytes);
    return status.exit_code;
  }

  /// Counts and prints a violated property. Returns `holds`.
  bool require(bool holds, const std::string& property) {
    if (holds) return true;
    ++violations_;
    std::printf("property violated: %s\n  %s\n  %.600s\n", property.c_str(), trial_.c_str(),
                content(folder_ + "/errors").c_str());
    return false;
  }

  std::string dyad_;
  std::string folder_;
  double row_fraction_;
  int rows_ = 0;
  std::string trial_;
  int models_ = 0;
  int rejections_ = 0;
  int violations_ = 0;
  double longest_seconds_ = 0;     ///< of all runs
  double largest_peak_bytes_ = 0;  ///< of all runs
};

}  // namespace
}  // namespace dyad::trials

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: dyad_hostile DYAD FOLDER [FRACTION [NAME]]\n");
    return 2;
  }
  const std::string name = argc > 4 ? argv[4] : "";
  std::vector<dyad::trials::HostileStream> streams = dyad::trials::hostile_streams();
  std::erase_if(streams, [&](const auto& stream) { return stream.name.find(name) == std::string::npos; });
  if (streams.empty()) {
    std::fprintf(stderr, "dyad_hostile: no stream has '%s' in its name\n", name.c_str());
    return 2;
  }
  const std::string folder = dyad::trials::new_folder(argv[2]);
  dyad::trials::HostileTrials trials(argv[1], folder, argc > 3 ? std::stod(argv[3]) : 1);
  for (const auto& stream : streams) trials.run(stream);
  std::filesystem::remove_all(folder);
  return trials.report() ? 0 : 1;
}
