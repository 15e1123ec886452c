// Lets every solver learn every hostile stream: dyad_hostile DYAD FOLDER [SHARE [NAME]]
// Each gets a finite model and finite predictions, or is refused with a reason, in bounded memory and time. SHARE of
// the rows, for slow builds; NAME: only the streams whose name contains it.
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

const std::map<std::string, std::vector<std::string>> ways{
    {"auto", {}},
    {"auto, no memory, single", {"--memory", "0", "--precision", "single"}},
    {"kalman", {"--solver", "kalman"}},
    {"kalman, forgetting", {"--solver", "kalman", "--forget", "100"}},
    {"moment", {"--solver", "moment", "--batch", "200"}},
    {"newton", {"--solver", "newton"}},
    {"variational", {"--solver", "variational"}}};

#ifdef DYAD_SANITIZED
constexpr double slowness = 10;
#else
constexpr double slowness = 1;
#endif
constexpr double most_seconds_of_a_run = 60 * slowness;
constexpr double most_bytes = 3.5e9;  // a million features and their variances in nine filters, and a copy to save them

class Battery {
 public:
  Battery(std::string dyad, std::string folder, double share)
      : dyad_(std::move(dyad)), folder_(std::move(folder)), share_(share) {}

  void run(const HostileStream& stream) {
    rows_ = std::max(4, static_cast<int>(share_ * stream.rows));
    {
      std::ofstream file(folder_ + "/rows", std::ios::binary);
      stream.write(file, rows_);
    }
    const int models_before = models_;
    for (const auto& [way, options] : ways) {
      if (!stream.ways.empty() && std::find(stream.ways.begin(), stream.ways.end(), way) == stream.ways.end()) continue;
      trial_ = stream.name + ", " + way;
      std::vector<std::string> more = stream.options;
      more.insert(more.end(), options.begin(), options.end());
      learn(stream, more);
    }
    trial_ = stream.name;
    require(models_ > models_before || stream.fate != Fate::learned, "at least one solver learns it");
  }

  /// True if no promise was broken.
  [[nodiscard]] bool report() const {
    std::printf("%d models, %d refusals, %d broken promises; at most %.1f s and %.0f MB\n", models_, refusals_, broken_,
                seconds_, bytes_ / 1e6);
    return broken_ == 0;
  }

 private:
  void learn(const HostileStream& stream, const std::vector<std::string>& options) {
    const std::string rows = folder_ + "/rows";
    const std::string model = folder_ + "/model";
    std::filesystem::remove(model);
    std::vector<std::string> command{"train", rows, "--format", stream.format, "-m", model, "--json", "--quiet"};
    command.insert(command.end(), options.begin(), options.end());
    const int code = dyad(command);
    if (stream.fate == Fate::too_large ? code == 1 : code == 2 || code == 3) {
      ++refusals_;
      require(!content(folder_ + "/errors").empty(), "a refusal has a reason");
      return;
    }
    if (!require(code == 0, "a stream is learned or refused")) return;
    ++models_;
    require(stream.fate == Fate::learned, "such rows are refused");
    const auto summary = nlohmann::json::parse(content(folder_ + "/out"), nullptr, false);
    if (!require(summary.is_object() && summary.value("rows", 0) == rows_, "all rows are learned")) return;
    for (const char* which : {"metrics", "progressive"})
      for (const auto& [name, value] : summary.at(which).items())
        require(value.is_number() || (value.is_null() && !summary.at("warnings").empty()),
                "the metric " + name + " is a number, or left out with a warning");
    predict(stream.format, model, {});
    if (std::find(options.begin(), options.end(), "moment") == options.end()) predict(stream.format, model, {"--std"});
  }

  void predict(const std::string& format, const std::string& model, const std::vector<std::string>& options) {
    std::vector<std::string> command{"predict", "-m", model, folder_ + "/rows", "--format", format, "--quiet"};
    command.insert(command.end(), options.begin(), options.end());
    const int code = dyad(command);
    // A row so far from all others that its deviation is not finite is named.
    if (code == 3 && !options.empty()) return;
    if (!require(code == 0, "what was learned can be predicted")) return;
    std::istringstream lines(content(folder_ + "/out"));
    int count = 0;
    bool finite = true;
    for (std::string line; std::getline(lines, line); ++count) {
      std::replace(line.begin(), line.end(), ',', ' ');
      std::istringstream words(line);
      for (std::string word; words >> word;) finite = finite && std::isfinite(std::strtod(word.c_str(), nullptr));
    }
    require(finite, "predictions are finite");
    require(count == rows_, "there is a prediction for every row");
  }

  int dyad(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), dyad_);
    Process process(arguments, {.errors = folder_ + "/errors", .output = folder_ + "/out"});
    const Ending ending = process.wait(most_seconds_of_a_run);
    require(!ending.was_cut_off, "time is bounded");
    require(ending.signal == 0 || ending.was_cut_off, "no signal ends it");
    require(share_ < 1 || ending.peak_bytes <= most_bytes, "memory is bounded");
    seconds_ = std::max(seconds_, ending.seconds);
    bytes_ = std::max(bytes_, ending.peak_bytes);
    return ending.exit_code;
  }

  bool require(bool holds, const std::string& promise) {
    if (holds) return true;
    ++broken_;
    std::printf("broken promise: %s\n  %s\n  %.600s\n", promise.c_str(), trial_.c_str(),
                content(folder_ + "/errors").c_str());
    return false;
  }

  std::string dyad_;
  std::string folder_;
  double share_;
  int rows_ = 0;
  std::string trial_;
  int models_ = 0;
  int refusals_ = 0;
  int broken_ = 0;
  double seconds_ = 0;
  double bytes_ = 0;
};

}  // namespace
}  // namespace dyad::trials

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: dyad_hostile DYAD FOLDER [SHARE [NAME]]\n");
    return 2;
  }
  const std::string name = argc > 4 ? argv[4] : "";
  std::vector<dyad::trials::HostileStream> streams = dyad::trials::hostile_streams();
  std::erase_if(streams, [&](const auto& stream) { return stream.name.find(name) == std::string::npos; });
  if (streams.empty()) {
    std::fprintf(stderr, "dyad_hostile: no stream is called '%s'\n", name.c_str());
    return 2;
  }
  const std::string folder = dyad::trials::fresh_folder(argv[2]);
  dyad::trials::Battery battery(argv[1], folder, argc > 3 ? std::stod(argv[3]) : 1);
  for (const auto& stream : streams) battery.run(stream);
  std::filesystem::remove_all(folder);
  return battery.report() ? 0 : 1;
}
