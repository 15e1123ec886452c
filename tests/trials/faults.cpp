// Lets training meet a fault at a random moment, again and again, and looks at what is left:
//   dyad_faults DYAD FAILING_CALLS FOLDER [TRIALS [SEED]]
// Whatever happens, the model file holds the old model, a checkpoint or the finished model, whole; and going on from it
// gives the bytes that a run without the fault gives.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "process.h"

namespace dyad::trials {
namespace {

constexpr int all_rows = 12000;
constexpr int enough_trials = 36;  // for every fault to come early and late

void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// The rows [first, last) of users and movies, as libsvm or as csv with its header.
std::string made_rows(bool csv, int first, int last) {
  std::ostringstream text;
  if (csv) text << "user,movie,age,rating\n";
  std::mt19937 random(7);
  std::uniform_int_distribution<> any(0, 1 << 20);
  for (int i = 0; i < last; ++i) {
    const int user = any(random) % (20 + i / 100);
    const int movie = any(random) % 30;
    const int age = any(random) % 50;
    const double noise = any(random) % 100 / 100.0;
    if (i < first) continue;
    const double rating = 3 + user % 3 - movie % 2 + (user % 2 == movie % 3 ? 1 : 0) + 0.02 * age + noise;
    if (csv)
      text << 'u' << user << ",m" << movie << ',' << age << ',' << rating << '\n';
    else
      text << rating << ' ' << movie << ":1 " << 30 + user << ":1 " << 2000 << ':' << age / 50.0 << '\n';
  }
  return text.str();
}

/// One way to train, and what it gives when nothing goes wrong.
struct Way {
  std::string name;
  bool csv = false;
  int stretch = 1000;  ///< rows from checkpoint to checkpoint; above 4096, interruptions come between them
  std::vector<std::string> options{};
  std::string rows{};   ///< a file
  std::string final{};  ///< the bytes of the model
  double seconds = 0;
};

class Harness {
 public:
  Harness(std::string dyad, std::string failing_calls, std::string folder, unsigned seed)
      : dyad_(std::move(dyad)),
        failing_calls_(std::move(failing_calls)),
        folder_(std::move(folder)),
        model_(folder_ + "/model"),
        random_(seed) {
    ways_ = {
        {.name = "csv, auto", .csv = true, .options = {"--target", "rating"}},
        {.name = "csv, auto, no memory", .csv = true, .options = {"--target", "rating", "--memory", "0"}},
        {.name = "libsvm, kalman, single", .stretch = 5000, .options = {"--solver", "kalman", "--precision", "single"}},
        {.name = "libsvm, moment", .options = {"--solver", "moment", "--batch", "500"}}};
    for (Way& way : ways_) {
      way.rows = folder_ + (way.csv ? "/rows.csv" : "/rows.svm");
      write_file(way.rows, made_rows(way.csv, 0, all_rows));
      std::filesystem::remove(model_);
      const Ending ending = Process(training(way), {.input = way.rows}).wait();
      require(ending.exit_code == 0, "training without a fault works");
      way.final = content(model_);
      way.seconds = ending.seconds;
    }
    // An old model of other rows, which no fault may lose.
    Way other = ways_.front();
    other.options.insert(other.options.end(), {"--rank", "2"});
    require(Process(training(other), {.input = other.rows}).wait().exit_code == 0, "an old model can be made");
    old_ = content(model_);
  }

  void run(int trials) {
    const std::vector<std::pair<const char*, void (Harness::*)()>> faults{
        {"SIGKILL", &Harness::kill_at_once},     {"SIGKILL", &Harness::kill_at_once},
        {"SIGTERM", &Harness::ask_to_end},       {"Ctrl-C", &Harness::interrupt},
        {"broken pipe", &Harness::lose_reader},  {"writer dies", &Harness::lose_writer},
        {"full disk", &Harness::fill_disk},      {"size limit", &Harness::limit_file_size},
        {"read error", &Harness::fail_to_read},  {"file grows", &Harness::grow_file},
        {"file shrinks", &Harness::shrink_file}, {"memory limit", &Harness::limit_memory}};
    for (int trial = 0; trial < trials; ++trial) {
      const auto& [name, fault] = faults[static_cast<std::size_t>(trial) % faults.size()];
      way_ = &ways_[static_cast<std::size_t>(whole(0, static_cast<int>(ways_.size()) - 1))];
      had_model_ = whole(0, 1) == 1;
      put_back();
      trial_ = std::to_string(trial) + ", " + name + ", " + way_->name + (had_model_ ? ", over an old model" : "");
      (this->*fault)();
      ++done_[name];
    }
    trial_ = "all of them";
    require(resumed_ > 0 || trials < enough_trials, "there are checkpoints");
    require(finished_ > 0 || trials < enough_trials, "runs get finished");
    for (const auto& [name, count] : done_) std::printf("%-14s %4d\n", name.c_str(), count);
    std::printf(
        "%d faults: nothing lost; %d went on from a checkpoint, %d were interrupted, %d found the run finished\n",
        trials, resumed_, interrupted_, finished_);
  }

 private:
  /// What was there before the run.
  void put_back() {
    std::filesystem::remove(model_);
    if (had_model_) write_file(model_, old_);
  }

  void require(bool holds, const std::string& promise) const {
    if (!holds)
      throw std::runtime_error("broken promise: " + promise + "\n  trial " + trial_ + "\n  " +
                               content(folder_ + "/errors"));
  }

  double share() { return std::uniform_real_distribution<>()(random_); }
  int whole(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }

  [[nodiscard]] std::vector<std::string> resuming(const Way& way) const {
    std::vector<std::string> command = learning(way);
    command.emplace_back("--resume");
    return command;
  }
  [[nodiscard]] std::vector<std::string> training(const Way& way, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = learning(way);
    command.insert(command.end(), way.options.begin(), way.options.end());
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  [[nodiscard]] std::vector<std::string> learning(const Way& way) const {
    return {dyad_,
            "train",
            "-",
            "--format",
            way.csv ? "csv" : "libsvm",
            "-m",
            model_,
            "--checkpoint-every",
            std::to_string(way.stretch),
            "--threads",
            "2"};
  }

  Process::Setup setup(const std::string& rows) const { return {.input = rows, .errors = folder_ + "/errors"}; }

  /// Rows that the model at `model_` has learned; -1: there is none.
  int rows_of_model() {
    if (!std::filesystem::exists(model_)) return -1;
    const std::string answer = folder_ + "/inspected";
    Process inspect({dyad_, "inspect", model_, "--json"}, {.errors = folder_ + "/errors", .output = answer});
    require(inspect.wait().exit_code == 0, "the model file can be read after a fault");
    const auto fields = nlohmann::json::parse(content(answer), nullptr, false);
    return std::stoi(fields.at("training").at("rows").get<std::string>());
  }

  /// Rows that a model of this run has learned; -1: there is none, but the old one where there was one.
  int rows_of_new_model() {
    const bool is_old = std::filesystem::exists(model_) && content(model_) == old_;
    require(had_model_ ? std::filesystem::exists(model_) : !is_old, "the old model is there until a new one is");
    return is_old ? -1 : rows_of_model();
  }

  /// Nothing is lost: there is the old model, or one of this run, from which going on gives what no fault gives.
  void check_and_go_on() {
    const int rows = rows_of_new_model();
    if (ending_.exit_code == 0) require(rows == all_rows, "who is done has learned all rows");
    if (rows < 0) return;
    if (rows == all_rows) {
      ++finished_;
    } else {
      const bool was_interrupted = ending_.exit_code == 130;
      require(was_interrupted || rows % way_->stretch == 0, "between checkpoints only an interruption saves");
      ++(was_interrupted ? interrupted_ : resumed_);
      const std::string rest = folder_ + "/rest";
      if (rows % way_->stretch != 0) {
        const std::string stopped = content(model_);
        write_file(rest, made_rows(way_->csv, 0, rows));
        require(Process(training(*way_), setup(rest)).wait().exit_code == 0, "the first rows can be learned alone");
        require(content(model_) == stopped, "an interruption leaves what the rows so far give");
      }
      write_file(rest, made_rows(way_->csv, rows, all_rows));
      require(Process(resuming(*way_), setup(rest)).wait().exit_code == 0, "training can be resumed after a fault");
    }
    require(content(model_) == way_->final, "going on gives what a run without a fault gives");
  }

  void end_by(int signal) {
    Process process(training(*way_), setup(way_->rows));
    sleep_for(1.1 * way_->seconds * share());
    process.signal(signal);
    ending_ = process.wait();
  }

  void kill_at_once() {
    end_by(SIGKILL);
    require(ending_.signal == SIGKILL || ending_.exit_code == 0, "a killed process is dead");
    check_and_go_on();
  }

  void ask(int signal) {
    end_by(signal);
    // Before the program listens, the signal ends it like any other.
    require(ending_.exit_code == 130 || ending_.exit_code == 0 || ending_.signal == signal,
            "who is asked to end saves the model and says so");
    // Before the first rows there is nothing to save, and that is said.
    if (ending_.exit_code == 130 &&
        content(folder_ + "/errors").find("nothing was learned or saved") == std::string::npos)
      require(rows_of_new_model() > 0, "who is interrupted saves what was learned");
    check_and_go_on();
  }
  void ask_to_end() { ask(SIGTERM); }
  void interrupt() { ask(SIGINT); }

  /// Closes the reading end of its messages.
  void lose_reader() {
    const std::string pipe = folder_ + "/pipe";
    std::filesystem::remove(pipe);
    require(mkfifo(pipe.c_str(), 0600) == 0, "there is a pipe");
    const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    Process process(training(*way_), {.input = way_->rows, .errors = pipe});
    sleep_for(way_->seconds * share());
    close(reader);
    ending_ = process.wait();
    require(ending_.exit_code == 0, "unread messages do not stop it");
    check_and_go_on();
  }

  /// Rows come through a pipe whose writer goes away, perhaps in the middle of a row.
  void lose_writer() {
    const std::string all = content(way_->rows);
    const std::string rows = all.substr(0, static_cast<std::size_t>(share() * static_cast<double>(all.size())));
    const std::string part = folder_ + "/part";
    write_file(part, rows);
    ending_ = Process({"/bin/sh", "-c", "cat '" + part + "' | " + in_shell(training(*way_))}, setup("")).wait();
    require(ending_.exit_code == 0 || ending_.exit_code == 3 || ending_.exit_code == 2,
            "rows that end too early are learned or refused");
    const int count = rows_in(rows);
    check_rows(count, count);
    const std::string from_pipe = content(model_);
    put_back();
    require(Process(training(*way_), setup(part)).wait().exit_code == ending_.exit_code && content(model_) == from_pipe,
            "rows that end too early are as good as a file that ends there");
  }

  /// With what stands behind the last end of a line.
  [[nodiscard]] int rows_in(const std::string& text) const {
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    return lines + (text.ends_with('\n') ? 0 : 1) - (way_->csv ? 1 : 0);
  }

  static std::string in_shell(const std::vector<std::string>& command) {
    std::string text;
    for (const std::string& word : command) text += "'" + word + "' ";
    return text;
  }

  /// For rows other than those of a run without the fault: all of them are learned, or those up to a checkpoint.
  void check_rows(int least, int most) {
    const int rows = rows_of_new_model();
    if (ending_.exit_code == 0)
      require(rows >= least && rows <= most, "who is done has learned the rows that were there");
    else
      require(rows < 0 || (rows <= most && rows % way_->stretch == 0), "who fails leaves a checkpoint");
  }

  /// One of the first `latest` calls, and all behind it.
  void fail_call(const char* call, int error, int latest) {
    Process::Setup faulty = setup(way_->rows);
    faulty.environment = {"LD_PRELOAD=" + failing_calls_, std::string("DYAD_FAIL_CALL=") + call,
                          "DYAD_FAIL_AT=" + std::to_string(whole(1, latest)),
                          "DYAD_FAIL_ERROR=" + std::to_string(error)};
    ending_ = Process(training(*way_), faulty).wait();
    require(ending_.exit_code == 1 || ending_.exit_code == 0, "a call that fails is an error that is told");
    if (ending_.exit_code == 1)
      require(content(folder_ + "/errors").find("dyad: ") != std::string::npos, "an error is told");
    check_and_go_on();
  }
  void fill_disk() {
    const std::pair<const char*, int> calls_to_save[] = {{"write", 1}, {"fsync", 2}, {"rename", 1}};
    const auto& [call, count] = calls_to_save[whole(0, 2)];
    const int times_saved = all_rows / way_->stretch + 1;
    fail_call(call, ENOSPC, count * times_saved);
  }
  void fail_to_read() { fail_call("read", EIO, 5); }

  void limit_file_size() {
    Process::Setup limited = setup(way_->rows);
    const auto bytes = static_cast<rlim_t>(1.2 * share() * static_cast<double>(way_->final.size()));
    limited.before = [bytes] {
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
    };
    ending_ = Process(training(*way_), limited).wait();
    require(ending_.exit_code == 1 || ending_.exit_code == 0, "a file that may not grow is an error that is told");
    check_and_go_on();
  }

  /// Little address space is refused at once; with more, a model that is too large meets its end somewhere.
  void limit_memory() {
    Process::Setup limited = setup(way_->rows);
    const bool is_little = whole(0, 3) == 0;
    const auto bytes = static_cast<rlim_t>(is_little ? whole(20, 600) : whole(1100, 2000)) << 20;
    limited.before = [bytes] {
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_AS, &limit);
    };
    ending_ = Process(training(*way_, {"--hash-bits", "19", "--rank", "9"}), limited).wait();
    // Below what the loader and OpenBLAS need, the program does not even start.
    const bool started = ending_.exit_code != 127 && ending_.signal != SIGINT;
    require(!started || ending_.exit_code == 1 || (ending_.exit_code == 0 && !is_little),
            "memory that is not there is an error that is told");
    check_rows(all_rows, all_rows);
  }

  void with_changing_file(const std::string& changed, const std::string& bytes, bool grows) {
    write_file(changed, bytes);
    std::vector<std::string> command = training(*way_);
    command[2] = changed;
    command.insert(command.end(), {"--passes", "1"});
    Process process(command, setup(""));
    const double pause = way_->seconds * share() / 2;
    std::thread changes([&] {
      sleep_for(pause);
      if (grows)
        std::ofstream(changed, std::ios::app | std::ios::binary) << made_rows(way_->csv, 0, all_rows).substr(22);
      else
        std::filesystem::resize_file(changed, bytes.size() / 3);
    });
    ending_ = process.wait();
    changes.join();
    require(ending_.exit_code == 0 || ending_.exit_code == 3, "a file that changes is read or refused");
    const int before = rows_in(bytes);
    const int after = rows_in(content(changed));
    check_rows(std::min(before, after), std::max(before, after));
  }
  void grow_file() {
    const std::string rows = content(way_->rows);
    with_changing_file(folder_ + "/changing", rows.substr(0, rows.size() / 2), true);
  }
  void shrink_file() { with_changing_file(folder_ + "/changing", content(way_->rows), false); }

  std::string dyad_;
  std::string failing_calls_;
  std::string folder_;
  std::string model_;
  std::mt19937 random_;
  std::vector<Way> ways_;
  std::string old_;
  const Way* way_ = nullptr;
  bool had_model_ = false;
  std::string trial_ = "before the first";
  Ending ending_;
  std::map<std::string, int> done_;
  int resumed_ = 0;
  int interrupted_ = 0;
  int finished_ = 0;
};

}  // namespace
}  // namespace dyad::trials

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: dyad_faults DYAD FAILING_CALLS FOLDER [TRIALS [SEED]]\n");
    return 2;
  }
  try {
    const std::string folder = dyad::trials::fresh_folder(argv[3]);
    dyad::trials::Harness harness(argv[1], argv[2], folder, argc > 5 ? static_cast<unsigned>(std::stoul(argv[5])) : 1);
    harness.run(argc > 4 ? std::stoi(argv[4]) : dyad::trials::enough_trials);
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
