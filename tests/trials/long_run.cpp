// Trains on a long stream of ratings through a pipe: dyad_long_run DYAD FOLDER ROWS [OPTIONS of train...]
// Prints the speed and the memory of the process over time. Memory must be constant, the loss must approach the noise,
// and the standard deviation of the targets must agree with one computed in higher precision.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "process.h"

namespace dyad::trials {
namespace {

constexpr int users = 2000;
constexpr int movies = 500;
constexpr int rank = 2;                // of the interactions between users and movies
constexpr double noise = 0.5;          // standard deviation
constexpr double target_step = 0.001;  // targets have three decimal digits

/// Mean and variance by Welford's update in extended precision.
class TargetMoments {
 public:
  void add(double target) {
    ++count_;
    const long double difference = target - mean_;
    mean_ += difference / static_cast<long double>(count_);
    squares_ += difference * (target - mean_);
  }
  [[nodiscard]] double deviation() const {
    return static_cast<double>(std::sqrt(squares_ / static_cast<long double>(count_)));
  }

 private:
  std::int64_t count_ = 0;
  long double mean_ = 0;
  long double squares_ = 0;  ///< sum of squared differences from the mean
};

/// Generator of ratings: offsets of user and movie, a product of rank-2 factors, and noise.
class Ratings {
 public:
  Ratings() {
    std::normal_distribution<> normal;
    for (auto* parameters : {&user_, &movie_})
      for (double& value : *parameters) value = normal(random_);
    // The noise is drawn from this table, because drawing a normal number for every row would take longer than
    // training.
    for (double& value : noise_) value = noise * normal(random_);
  }

  /// Appends a row in libsvm format.
  void append(std::string& text) {
    const std::uint64_t draw = random_();
    const auto user = static_cast<std::size_t>(draw % users);
    const auto movie = static_cast<std::size_t>((draw >> 20) % movies);
    double y = user_[user * (rank + 1)] + movie_[movie * (rank + 1)];
    for (std::size_t c = 1; c <= rank; ++c) y += user_[user * (rank + 1) + c] * movie_[movie * (rank + 1) + c];
    y = target_step * std::round((3 + y + noise_[(draw >> 40) % noise_.size()]) / target_step);
    moments.add(y);
    append_number(text, y, std::chars_format::fixed, 3);
    text += ' ';
    append_number(text, user);
    text += ":1 ";
    append_number(text, users + movie);
    text += ":1\n";
  }

  TargetMoments moments;

 private:
  template <typename... Arguments>
  static void append_number(std::string& text, Arguments... arguments) {
    std::array<char, 32> digits{};
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), arguments...).ptr);
  }

  std::mt19937_64 random_{1};
  std::vector<double> user_ = std::vector<double>(users * (rank + 1));
  std::vector<double> movie_ = std::vector<double>(movies * (rank + 1));
  std::vector<double> noise_ = std::vector<double>(1 << 20);
};

/// Rows written so far, time, and resident memory of the training process.
struct Sample {
  std::int64_t rows = 0;
  double seconds = 0;
  double bytes = 0;
};

double resident_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  double size = 0;
  double resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0) throw std::runtime_error("the training process does not read its input");
    done += static_cast<std::size_t>(written);
  }
}

void require(bool holds, const std::string& property) {
  if (!holds) throw std::runtime_error("property violated: " + property);
}

void run(const std::string& dyad, const std::string& folder, std::int64_t rows, std::vector<std::string> options) {
  const std::string pipe = folder + "/pipe";
  require(mkfifo(pipe.c_str(), 0600) == 0, "a pipe is created");
  std::vector<std::string> command{dyad, "train", "-", "--format", "libsvm", "-m", folder + "/model", "--json"};
  command.insert(command.end(), options.begin(), options.end());
  Process training(command, {.input = pipe, .errors = folder + "/errors", .output = folder + "/summary"});
  const int out = open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
  require(out >= 0, "the pipe is opened");

  Ratings ratings;
  std::vector<Sample> samples;
  std::string text;
  const auto start = std::chrono::steady_clock::now();
  constexpr int sample_count = 20;
  std::printf("%12s %9s %12s %8s\n", "rows", "seconds", "rows/s", "MB");
  for (std::int64_t row = 1; row <= rows; ++row) {
    ratings.append(text);
    if (text.size() > (1 << 20) || row == rows) {
      write_all(out, text);
      text.clear();
    }
    if (row * sample_count / rows == (row - 1) * sample_count / rows) continue;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const Sample previous = samples.empty() ? Sample() : samples.back();
    samples.push_back({row, seconds, resident_bytes(training.id())});
    std::printf("%12lld %9.1f %12.0f %8.1f\n", static_cast<long long>(row), seconds,
                static_cast<double>(row - previous.rows) / (seconds - previous.seconds), samples.back().bytes / 1e6);
    std::fflush(stdout);
  }
  close(out);
  require(training.wait().exit_code == 0, "training succeeds");

  std::ifstream file(folder + "/summary");
  const auto summary = nlohmann::json::parse(file, nullptr, false);
  const double rmse = summary.at("metrics").at("rmse");
  const double deviation = summary.at("progressive").at("best_constant");
  const double expected_deviation = ratings.moments.deviation();
  const double memory_growth = samples.back().bytes / samples[sample_count / 4].bytes;
  const auto rate = [&](std::size_t from, std::size_t to) {
    return static_cast<double>(samples[to].rows - samples[from].rows) / (samples[to].seconds - samples[from].seconds);
  };
  std::printf("memory at the end relative to 30%% of the rows     %.3f\n", memory_growth);
  std::printf("speed of the last quarter relative to the second  %.3f\n",
              rate(3 * sample_count / 4 - 1, sample_count - 1) / rate(sample_count / 4 - 1, sample_count / 2 - 1));
  std::printf("rmse of the latest half of the rows               %.9f (noise: %g)\n", rmse, noise);
  std::printf("standard deviation of all targets                 %.15g\n", deviation);
  std::printf("the same with 64-bit mantissas                    %.15g\n", expected_deviation);
  require(summary.at("rows") == rows, "all rows are learned");
  require(memory_growth < 1.05, "memory is constant");
  // In single precision the targets are rounded before they are summed.
  const bool is_single = std::find(options.begin(), options.end(), "single") != options.end();
  require(std::abs(deviation / expected_deviation - 1) < (is_single ? 1e-9 : 1e-13), "sums are accurate");
  // The loss of shorter runs is not checked.
  if (rows >= 10'000'000) require(rmse < 1.005 * noise, "the loss approaches the noise");
}

}  // namespace
}  // namespace dyad::trials

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: dyad_long_run DYAD FOLDER ROWS [OPTIONS of train...]\n");
    return 2;
  }
  try {
    const std::string folder = dyad::trials::new_folder(argv[2]);
    dyad::trials::run(argv[1], folder, std::stoll(argv[3]), std::vector<std::string>(argv + 4, argv + argc));
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
