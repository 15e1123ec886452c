// Time of parsing text into rows, as in `train`, with one and two threads, and of loading a model, as in `predict`, on
// one core. plain_read, which reads the same file without parsing, is the lower bound. The column CPU has the processor
// time of all threads.
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include <dyad/train.h>

#include "base/random.h"
#include "encoding/sources/row_reader.h"
#include "serialization/model_file.h"

namespace dyad {
namespace {

constexpr std::size_t file_bytes = std::size_t{64} << 20;

/// Temporary file of rows that `make_row` appends to its text. The destructor removes it.
class GeneratedFile {
 public:
  template <typename MakeRow>
  GeneratedFile(const std::string& name, const std::string& header, MakeRow&& make_row)
      : path_(std::filesystem::temp_directory_path() / ("dyad-benchmark-" + std::to_string(getpid()) + name)) {
    std::string text = header;
    Random random(1, 0);
    while (text.size() < file_bytes) make_row(random, text);
    std::ofstream(path_, std::ios::binary) << text;
    bytes_ = text.size();
  }
  ~GeneratedFile() { std::filesystem::remove(path_); }
  GeneratedFile(const GeneratedFile&) = delete;
  GeneratedFile& operator=(const GeneratedFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::string path_;
  std::size_t bytes_ = 0;
};

/// Integer in [0, below) with a skewed distribution, as of users and movies in ratings.
int skewed_integer(Random& random, int below) {
  const double u = random.uniform();
  return static_cast<int>(u * u * u * below);
}

std::string uniform_integer(Random& random, int below) {
  return std::to_string(static_cast<int>(random.uniform() * below));
}

const GeneratedFile& measurements_svm() {
  static const GeneratedFile file(".svm", "", [](Random& random, std::string& text) {
    text += std::to_string(random.normal());
    for (int j = 1; j <= 50; ++j) text += " " + std::to_string(j) + ":" + std::to_string(random.normal());
    text += "\n";
  });
  return file;
}

const GeneratedFile& flags_svm() {
  static const GeneratedFile file("-flags.svm", "", [](Random& random, std::string& text) {
    text += random.uniform() < 0.2 ? "+1" : "-1";
    for (int j = 0; j < 14; ++j)
      text += " " + std::to_string(9 * j + 1 + static_cast<int>(random.uniform() * 9)) + ":1";
    text += "\n";
  });
  return file;
}

const GeneratedFile& ratings_svm() {
  static const GeneratedFile file("-ratings.svm", "", [](Random& random, std::string& text) {
    text += uniform_integer(random, 11) + " " + uniform_integer(random, 20000) + ":1 " +
            std::to_string(20000 + static_cast<int>(random.uniform() * 10000)) + ":1\n";
  });
  return file;
}

const GeneratedFile& numbers_csv() {
  static const GeneratedFile file(".csv", "a,b,c,d,e,f,g,h,i,j,y\n", [](Random& random, std::string& text) {
    for (int j = 0; j < 10; ++j) text += std::to_string(random.normal()) + ",";
    text += std::to_string(random.normal()) + "\n";
  });
  return file;
}

const GeneratedFile& ratings_csv() {
  static const GeneratedFile file("-ratings.csv", "user,movie,y,time\n", [](Random& random, std::string& text) {
    text += std::to_string(skewed_integer(random, 20000)) + "," + std::to_string(skewed_integer(random, 10000)) + "," +
            uniform_integer(random, 11) + ",1364" + uniform_integer(random, 1000000) + "\n";
  });
  return file;
}

template <typename File>
void plain_read(benchmark::State& state, const File& (*make)()) {
  const File& file = make();
  std::vector<char> buffer(std::size_t{1} << 17);
  for (auto _ : state) {
    const int descriptor = open(file.path().c_str(), O_RDONLY);
    ssize_t count = 0;
    while ((count = read(descriptor, buffer.data(), buffer.size())) > 0) benchmark::DoNotOptimize(buffer.data());
    close(descriptor);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(file.bytes()));
}

void text_to_rows(benchmark::State& state, const GeneratedFile& (*make)()) {
  const GeneratedFile& file = make();
  DataOptions data;
  data.paths = {file.path()};
  ColumnOptions columns;
  if (file.path().ends_with(".csv")) columns.target = "y";
  if (file.path().ends_with("-ratings.csv")) {
    columns.categorical = {"user", "movie"};
    columns.ignored = {"time"};
  }
  Index rows = 0;
  for (auto _ : state) {
    FeatureMap map;
    RowReader<double> reader(map, {.data = data, .columns = columns, .threads = static_cast<int>(state.range(0))});
    rows = 0;
    for (RowBlock<double> block; reader.next(block) == RowReader<double>::Next::block;) rows += block.count();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(file.bytes()));
  state.counters["rows"] =
      benchmark::Counter(static_cast<double>(rows * state.iterations()), benchmark::Counter::kIsRate);
}

/// Model file of the ratings: 30,000 categories, k = 8, with the training state. The destructor removes the file.
class TrainedModel {
 public:
  TrainedModel() : path_(ratings_csv().path() + ".dyad") {
    TrainOptions options;
    options.data.paths = {ratings_csv().path()};
    options.columns.target = "y";
    options.columns.categorical = {"user", "movie"};
    options.columns.ignored = {"time"};
    options.model_path = path_;
    options.passes = 1;
    (void)train(options);
  }
  ~TrainedModel() { std::filesystem::remove(path_); }
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::size_t bytes() const { return std::filesystem::file_size(path_); }

 private:
  std::string path_;
};

const TrainedModel& ratings_model() {
  static const TrainedModel model;
  return model;
}

void model_load(benchmark::State& state) {
  const TrainedModel& model = ratings_model();
  for (auto _ : state) benchmark::DoNotOptimize(ModelFile::load(model.path()).model.intercept);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(model.bytes()));
}

#define DYAD_PARSING(file)                                                  \
  BENCHMARK_CAPTURE(plain_read, file, file)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(text_to_rows, file, file)                               \
      ->Unit(benchmark::kMillisecond)                                       \
      ->ArgName("threads")                                                  \
      ->Arg(1)                                                              \
      ->Arg(2)                                                              \
      ->MeasureProcessCPUTime()                                             \
      ->UseRealTime()

DYAD_PARSING(measurements_svm);
DYAD_PARSING(flags_svm);
DYAD_PARSING(ratings_svm);
DYAD_PARSING(numbers_csv);
DYAD_PARSING(ratings_csv);
BENCHMARK_CAPTURE(plain_read, ratings_model, ratings_model)->Unit(benchmark::kMillisecond);
BENCHMARK(model_load)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dyad
