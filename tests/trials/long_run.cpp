// Sends ratings through a pipe for as long as it takes: dyad_long_run DYAD FOLDER ROWS [OPTIONS of train...]
// Prints the speed and the memory of the learner as the rows go by. Memory must stay flat, the loss must come down to
// the noise, and the sums must agree with sums of the same rows in higher precision.
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
constexpr int tastes = 2;
constexpr double noise = 0.5;
constexpr double unit = 0.001;  // targets have three digits

/// A mean and a variance, to more digits than anybody needs.
class WideMoments {
 public:
  void add(double target) {
    ++count_;
    const long double off = target - mean_;
    mean_ += off / static_cast<long double>(count_);
    squares_ += off * (target - mean_);
  }
  [[nodiscard]] double deviation() const {
    return static_cast<double>(std::sqrt(squares_ / static_cast<long double>(count_)));
  }

 private:
  std::int64_t count_ = 0;
  long double mean_ = 0;
  long double squares_ = 0;
};

/// People with tastes rate films of kinds.
class Ratings {
 public:
  Ratings() {
    std::normal_distribution<> normal;
    for (auto* numbers : {&user_, &movie_})
      for (double& number : *numbers) number = normal(random_);
    // Noise from a table: drawing it anew takes longer than learning.
    for (double& number : noise_) number = noise * normal(random_);
  }

  /// Appends a row of libsvm text.
  void append(std::string& text) {
    const std::uint64_t draw = random_();
    const auto user = static_cast<std::size_t>(draw % users);
    const auto movie = static_cast<std::size_t>((draw >> 20) % movies);
    double y = user_[user * (tastes + 1)] + movie_[movie * (tastes + 1)];
    for (std::size_t c = 1; c <= tastes; ++c) y += user_[user * (tastes + 1) + c] * movie_[movie * (tastes + 1) + c];
    y = unit * std::round((3 + y + noise_[(draw >> 40) % noise_.size()]) / unit);
    moments.add(y);
    append_number(text, y, std::chars_format::fixed, 3);
    text += ' ';
    append_number(text, user);
    text += ":1 ";
    append_number(text, users + movie);
    text += ":1\n";
  }

  WideMoments moments;

 private:
  template <typename... How>
  static void append_number(std::string& text, How... how) {
    std::array<char, 32> digits{};
    text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), how...).ptr);
  }

  std::mt19937_64 random_{1};
  std::vector<double> user_ = std::vector<double>(users * (tastes + 1));
  std::vector<double> movie_ = std::vector<double>(movies * (tastes + 1));
  std::vector<double> noise_ = std::vector<double>(1 << 20);
};

struct Sample {
  std::int64_t rows = 0;
  double seconds = 0;
  double bytes = 0;
};

double resident_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0) throw std::runtime_error("the learner does not read on");
    done += static_cast<std::size_t>(written);
  }
}

void require(bool holds, const std::string& promise) {
  if (!holds) throw std::runtime_error("broken promise: " + promise);
}

void run(const std::string& dyad, const std::string& folder, std::int64_t rows, std::vector<std::string> options) {
  const std::string pipe = folder + "/pipe";
  require(mkfifo(pipe.c_str(), 0600) == 0, "there is a pipe");
  std::vector<std::string> command{dyad, "train", "-", "--format", "libsvm", "-m", folder + "/model", "--json"};
  command.insert(command.end(), options.begin(), options.end());
  Process learner(command, {.input = pipe, .errors = folder + "/errors", .output = folder + "/summary"});
  const int out = open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
  require(out >= 0, "the pipe can be written");

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
    const Sample last = samples.empty() ? Sample() : samples.back();
    samples.push_back({row, seconds, resident_bytes(learner.id())});
    std::printf("%12lld %9.1f %12.0f %8.1f\n", static_cast<long long>(row), seconds,
                static_cast<double>(row - last.rows) / (seconds - last.seconds), samples.back().bytes / 1e6);
    std::fflush(stdout);
  }
  close(out);
  require(learner.wait().exit_code == 0, "a long stream is learned");

  std::ifstream file(folder + "/summary");
  const auto summary = nlohmann::json::parse(file, nullptr, false);
  const double rmse = summary.at("metrics").at("rmse");
  const double constant = summary.at("progressive").at("best_constant");
  const double exact = ratings.moments.deviation();
  const auto growth = [&](std::size_t from, auto&& of) { return of(samples.back()) / of(samples[from]); };
  const double memory = growth(sample_count / 4, [](const Sample& sample) { return sample.bytes; });
  const auto rate = [&](std::size_t from, std::size_t to) {
    return static_cast<double>(samples[to].rows - samples[from].rows) / (samples[to].seconds - samples[from].seconds);
  };
  std::printf("memory, last against first quarter       %.3f\n", memory);
  std::printf("speed, last quarter against second       %.3f\n",
              rate(3 * sample_count / 4 - 1, sample_count - 1) / rate(sample_count / 4 - 1, sample_count / 2 - 1));
  std::printf("rmse of the latest half of the rows      %.9f (noise: %g)\n", rmse, noise);
  std::printf("deviation of all targets                 %.15g\n", constant);
  std::printf("the same in 64-bit mantissas             %.15g\n", exact);
  require(summary.at("rows") == rows, "all rows are learned");
  require(memory < 1.05, "memory is flat");
  // In single precision the targets themselves are rounded.
  const bool is_single = std::find(options.begin(), options.end(), "single") != options.end();
  require(std::abs(constant / exact - 1) < (is_single ? 1e-9 : 1e-13), "sums do not lose digits");
  if (rows >= 10'000'000) require(rmse < 1.005 * noise, "the loss comes down to the noise");
}

}  // namespace
}  // namespace dyad::trials

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: dyad_long_run DYAD FOLDER ROWS [OPTIONS of train...]\n");
    return 2;
  }
  try {
    const std::string folder = dyad::trials::fresh_folder(argv[2]);
    dyad::trials::run(argv[1], folder, std::stoll(argv[3]), std::vector<std::string>(argv + 4, argv + argc));
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
