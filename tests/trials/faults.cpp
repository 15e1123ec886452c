// Injects faults into training at random times and checks the model file afterwards:
//   dyad_faults DYAD FAILING_CALLS FOLDER [TRIALS [SEED]]
// After every fault, the model file contains the previous model, a checkpoint or the final model, and each is complete.
// Resuming from it gives the same bytes as a run without a fault.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
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
#include "rating_rows.h"

namespace dyad::trials {
namespace {

constexpr int all_rows = 12000;
/// Three times the 12 entries of the list of faults. In a run of at least this many trials, some must resume and some
/// must finish.
constexpr int default_trials = 36;

void write_file(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

/// One kind of training, and its result without a fault.
struct Scenario {
  std::string name;
  bool is_csv = false;
  /// Rows between checkpoints. If it exceeds the 4096 rows of a block, an interruption can save a model between
  /// checkpoints.
  int checkpoint_interval = 1000;
  std::vector<std::string> options{};
  std::string rows{};         ///< path of the training rows
  std::string final_model{};  ///< content of the model file
  double seconds = 0;         ///< duration of training
};

class FaultTrials {
 public:
  FaultTrials(std::string dyad, std::string failing_calls, std::string folder, unsigned seed)
      : dyad_(std::move(dyad)),
        failing_calls_(std::move(failing_calls)),
        folder_(std::move(folder)),
        model_(folder_ + "/model"),
        random_(seed) {
    scenarios_ = {{.name = "csv, auto", .is_csv = true, .options = {"--target", "rating", "--diagonal", "free"}},
                  {.name = "csv, auto, no memory", .is_csv = true, .options = {"--target", "rating", "--memory", "0"}},
                  {.name = "libsvm, kalman, single",
                   .checkpoint_interval = 5000,
                   .options = {"--solver", "kalman", "--precision", "single"}},
                  {.name = "libsvm, moment", .options = {"--solver", "moment", "--batch", "500"}}};
    for (Scenario& scenario : scenarios_) {
      scenario.rows = folder_ + (scenario.is_csv ? "/rows.csv" : "/rows.svm");
      write_file(scenario.rows, rating_rows(scenario.is_csv, 0, all_rows));
      std::filesystem::remove(model_);
      const ExitStatus status = Process(train_command(scenario), {.input = scenario.rows}).wait();
      require(status.exit_code == 0, "training without a fault succeeds");
      scenario.final_model = content(model_);
      scenario.seconds = status.seconds;
    }
    // The model that exists before training in half of the trials. Its rank differs from that of the trained models.
    Scenario other = scenarios_.front();
    other.options.insert(other.options.end(), {"--rank", "2"});
    require(Process(train_command(other), {.input = other.rows}).wait().exit_code == 0, "the old model is trained");
    old_model_ = content(model_);
  }

  void run(int trials) {
    // One entry per trial, repeated cyclically. SIGKILL has two entries.
    const std::vector<std::pair<const char*, void (FaultTrials::*)()>> faults{
        {"SIGKILL", &FaultTrials::send_sigkill},     {"SIGKILL", &FaultTrials::send_sigkill},
        {"SIGTERM", &FaultTrials::send_sigterm},     {"Ctrl-C", &FaultTrials::send_sigint},
        {"broken pipe", &FaultTrials::close_reader}, {"writer ends", &FaultTrials::end_writer},
        {"full disk", &FaultTrials::fill_disk},      {"size limit", &FaultTrials::limit_file_size},
        {"read error", &FaultTrials::fail_read},     {"file grows", &FaultTrials::grow_file},
        {"file shrinks", &FaultTrials::shrink_file}, {"memory limit", &FaultTrials::limit_memory}};
    for (int trial = 0; trial < trials; ++trial) {
      const auto& [name, fault] = faults[static_cast<std::size_t>(trial) % faults.size()];
      scenario_ = &scenarios_[static_cast<std::size_t>(random_integer(0, static_cast<int>(scenarios_.size()) - 1))];
      has_old_model_ = random_integer(0, 1) == 1;
      restore_old_model();
      trial_ =
          std::to_string(trial) + ", " + name + ", " + scenario_->name + (has_old_model_ ? ", with an old model" : "");
      (this->*fault)();
      ++trials_by_fault_[name];
    }
    trial_ = "summary of all trials";
    require(resumed_ > 0 || trials < default_trials, "some trials resume from a checkpoint");
    require(finished_ > 0 || trials < default_trials, "some trials finish in spite of the fault");
    for (const auto& [name, count] : trials_by_fault_) std::printf("%-14s %4d\n", name.c_str(), count);
    std::printf(
        "%d faults, no violated property: %d resumed from a checkpoint, %d interrupted between checkpoints, %d had "
        "finished\n",
        trials, resumed_, interrupted_, finished_);
  }

 private:
  /// Restores the state of the model file before training.
  void restore_old_model() {
    std::filesystem::remove(model_);
    if (has_old_model_) write_file(model_, old_model_);
  }

  void require(bool holds, const std::string& property) const {
    if (!holds)
      throw std::runtime_error("property violated: " + property + "\n  trial " + trial_ + "\n  " +
                               content(folder_ + "/errors"));
  }

  double random_fraction() { return std::uniform_real_distribution<>()(random_); }
  int random_integer(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }

  [[nodiscard]] std::vector<std::string> resume_command(const Scenario& scenario) const {
    std::vector<std::string> command = base_command(scenario);
    command.emplace_back("--resume");
    return command;
  }
  [[nodiscard]] std::vector<std::string> train_command(const Scenario& scenario,
                                                       const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = base_command(scenario);
    command.insert(command.end(), scenario.options.begin(), scenario.options.end());
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  [[nodiscard]] std::vector<std::string> base_command(const Scenario& scenario) const {
    return {dyad_,
            "train",
            "-",
            "--format",
            scenario.is_csv ? "csv" : "libsvm",
            "-m",
            model_,
            "--checkpoint-every",
            std::to_string(scenario.checkpoint_interval),
            "--threads",
            "2"};
  }

  Process::Setup setup(const std::string& rows) const { return {.input = rows, .errors = folder_ + "/errors"}; }

  /// Training rows of the model file, -1 if there is no file.
  int rows_of_model() {
    if (!std::filesystem::exists(model_)) return -1;
    const std::string output = folder_ + "/inspected";
    Process inspect({dyad_, "inspect", model_, "--json"}, {.errors = folder_ + "/errors", .output = output});
    require(inspect.wait().exit_code == 0, "the model file is readable after a fault");
    const auto fields = nlohmann::json::parse(content(output), nullptr, false);
    return std::stoi(fields.at("training").at("rows").get<std::string>());
  }

  /// Training rows of the model that this trial wrote, -1 if it wrote none. In that case the old model must be
  /// unchanged.
  int rows_of_new_model() {
    const bool is_old = std::filesystem::exists(model_) && content(model_) == old_model_;
    require(has_old_model_ ? std::filesystem::exists(model_) : !is_old,
            "the old model exists until the new one replaces it");
    return is_old ? -1 : rows_of_model();
  }

  /// Requires that the model file contains the old model or a model of this trial. Resumes the training of the latter
  /// on the remaining rows, and compares the result with that of a run without a fault.
  void check_and_resume() {
    const int rows = rows_of_new_model();
    if (status_.exit_code == 0) require(rows == all_rows, "a successful run has learned all rows");
    if (rows < 0) return;
    if (rows == all_rows) {
      ++finished_;
    } else {
      const bool was_interrupted = status_.exit_code == interrupted;
      require(was_interrupted || rows % scenario_->checkpoint_interval == 0,
              "only an interruption saves between checkpoints");
      ++(was_interrupted ? interrupted_ : resumed_);
      const std::string rows_path = folder_ + "/partial_rows";
      if (rows % scenario_->checkpoint_interval != 0) {
        const std::string interrupted_model = content(model_);
        write_file(rows_path, rating_rows(scenario_->is_csv, 0, rows));
        require(Process(train_command(*scenario_), setup(rows_path)).wait().exit_code == 0,
                "training on the first rows succeeds");
        require(content(model_) == interrupted_model,
                "an interrupted model equals the model trained on the rows before the interruption");
      }
      write_file(rows_path, rating_rows(scenario_->is_csv, rows, all_rows));
      require(Process(resume_command(*scenario_), setup(rows_path)).wait().exit_code == 0,
              "training is resumed after a fault");
    }
    require(content(model_) == scenario_->final_model, "the resumed model equals that of a run without a fault");
  }

  /// Sends the signal at a random time, up to 10% after the expected end of training.
  void send(int signal) {
    Process process(train_command(*scenario_), setup(scenario_->rows));
    sleep_for(1.1 * scenario_->seconds * random_fraction());
    process.signal(signal);
    status_ = process.wait();
  }

  void send_sigkill() {
    send(SIGKILL);
    require(status_.signal == SIGKILL || status_.exit_code == 0, "SIGKILL ends the process");
    check_and_resume();
  }

  void send_and_require_save(int signal) {
    send(signal);
    // Before the program installs its handlers, the signal terminates it.
    require(status_.exit_code == interrupted || status_.exit_code == 0 || status_.signal == signal,
            "an interrupted run saves the model and exits with code 130");
    // Before the first block of rows there is no model to save, and the program prints this message.
    if (status_.exit_code == interrupted &&
        content(folder_ + "/errors").find("no model was written") == std::string::npos)
      require(rows_of_new_model() > 0, "an interrupted run saves the model");
    check_and_resume();
  }
  void send_sigterm() { send_and_require_save(SIGTERM); }
  void send_sigint() { send_and_require_save(SIGINT); }

  /// Closes the reading end of the pipe that is the standard error of the process.
  void close_reader() {
    const std::string pipe = folder_ + "/pipe";
    std::filesystem::remove(pipe);
    require(mkfifo(pipe.c_str(), 0600) == 0, "a pipe is created");
    const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    Process process(train_command(*scenario_), {.input = scenario_->rows, .errors = pipe});
    sleep_for(scenario_->seconds * random_fraction());
    close(reader);
    status_ = process.wait();
    require(status_.exit_code == 0, "a closed message pipe does not stop training");
    check_and_resume();
  }

  /// Rows come through a pipe that ends early, usually within a row.
  void end_writer() {
    const std::string all = content(scenario_->rows);
    const std::string rows =
        all.substr(0, static_cast<std::size_t>(random_fraction() * static_cast<double>(all.size())));
    const std::string beginning = folder_ + "/beginning";
    write_file(beginning, rows);
    const std::string pipeline = "cat '" + beginning + "' | " + shell_text(train_command(*scenario_));
    status_ = Process({"/bin/sh", "-c", pipeline}, setup("")).wait();
    require(status_.exit_code == 0 || status_.exit_code == data_error || status_.exit_code == usage_error,
            "rows that end early are learned or rejected");
    const int count = rows_in(rows);
    check_rows(count, count);
    const std::string model_of_pipe = content(model_);
    restore_old_model();
    require(Process(train_command(*scenario_), setup(beginning)).wait().exit_code == status_.exit_code &&
                content(model_) == model_of_pipe,
            "a pipe that ends early gives the same result as a file with the same content");
  }

  /// Number of rows, including an incomplete last line.
  [[nodiscard]] int rows_in(const std::string& text) const {
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    return lines + (text.ends_with('\n') ? 0 : 1) - (scenario_->is_csv ? 1 : 0);
  }

  static std::string shell_text(const std::vector<std::string>& command) {
    std::string text;
    for (const std::string& word : command) text += "'" + word + "' ";
    return text;
  }

  /// For runs on other rows than those of the scenario: requires a model of min_rows to max_rows or, after an error, a
  /// checkpoint.
  void check_rows(int min_rows, int max_rows) {
    const int rows = rows_of_new_model();
    if (status_.exit_code == 0)
      require(rows >= min_rows && rows <= max_rows, "a successful run has learned the rows of the file");
    else
      require(rows < 0 || (rows <= max_rows && rows % scenario_->checkpoint_interval == 0),
              "a failed run leaves a checkpoint");
  }

  /// A random one of the first `max_position` calls fails, and all following calls.
  void fail_call(const char* call, int error, int max_position) {
    Process::Setup faulty = setup(scenario_->rows);
    faulty.environment = {"LD_PRELOAD=" + failing_calls_, std::string("DYAD_FAIL_CALL=") + call,
                          "DYAD_FAIL_AT=" + std::to_string(random_integer(1, max_position)),
                          "DYAD_FAIL_ERROR=" + std::to_string(error)};
    status_ = Process(train_command(*scenario_), faulty).wait();
    require(status_.exit_code == runtime_failure || status_.exit_code == 0,
            "a failing system call gives success or exit code 1");
    if (status_.exit_code == runtime_failure)
      require(content(folder_ + "/errors").find("dyad: ") != std::string::npos, "an error has a message");
    check_and_resume();
  }
  void fill_disk() {
    const std::pair<const char*, int> calls_per_save[] = {{"write", 1}, {"fsync", 2}, {"rename", 1}};
    const auto& [call, count] = calls_per_save[random_integer(0, 2)];
    const int saves = all_rows / scenario_->checkpoint_interval + 1;
    fail_call(call, ENOSPC, count * saves);
  }
  /// Fails one of the first five reads.
  void fail_read() { fail_call("read", EIO, 5); }

  /// Limits the file size to a random value, up to 1.2 times the size of the final model.
  void limit_file_size() {
    Process::Setup limited = setup(scenario_->rows);
    const auto bytes =
        static_cast<rlim_t>(1.2 * random_fraction() * static_cast<double>(scenario_->final_model.size()));
    limited.before = [bytes] {
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
    };
    status_ = Process(train_command(*scenario_), limited).wait();
    require(status_.exit_code == runtime_failure || status_.exit_code == 0,
            "a file size limit gives success or exit code 1");
    check_and_resume();
  }

  /// Limits the address space. Below about 1 GB the program must report an error at its start. Above, the allocation of
  /// the model, which is large because of its options, may fail at any time.
  void limit_memory() {
    Process::Setup limited = setup(scenario_->rows);
    const bool is_below_minimum = random_integer(0, 3) == 0;
    const auto bytes = static_cast<rlim_t>(is_below_minimum ? random_integer(20, 600) : random_integer(1100, 2000))
                       << 20;  // from MiB
    limited.before = [bytes] {
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_AS, &limit);
    };
    status_ = Process(train_command(*scenario_, {"--hash-bits", "19", "--rank", "9"}), limited).wait();
    // Below the requirements of the loader and of OpenBLAS, the program does not start.
    const bool has_started = status_.exit_code != 127 && status_.signal != SIGINT;
    require(!has_started || status_.exit_code == runtime_failure || (status_.exit_code == 0 && !is_below_minimum),
            "a memory limit gives exit code 1, or success above the minimum");
    check_rows(all_rows, all_rows);
  }

  /// Trains on a file that is extended or truncated during the run.
  void train_on_changing_file(const std::string& path, const std::string& bytes, bool grows) {
    write_file(path, bytes);
    std::vector<std::string> command = train_command(*scenario_);
    command[2] = path;
    command.insert(command.end(), {"--passes", "1"});
    Process process(command, setup(""));
    const double pause = scenario_->seconds * random_fraction() / 2;
    std::thread writer([&] {
      // Length of the csv header "user,movie,age,rating" with its line end. In libsvm format, the first 22 bytes of the
      // rows are dropped.
      constexpr std::size_t header_bytes = 22;
      sleep_for(pause);
      if (grows)
        std::ofstream(path, std::ios::app | std::ios::binary)
            << rating_rows(scenario_->is_csv, 0, all_rows).substr(header_bytes);
      else
        std::filesystem::resize_file(path, bytes.size() / 3);
    });
    status_ = process.wait();
    writer.join();
    require(status_.exit_code == 0 || status_.exit_code == data_error, "a changing file is learned or rejected");
    const int before = rows_in(bytes);
    const int after = rows_in(content(path));
    check_rows(std::min(before, after), std::max(before, after));
  }
  void grow_file() {
    const std::string rows = content(scenario_->rows);
    train_on_changing_file(folder_ + "/changing", rows.substr(0, rows.size() / 2), true);
  }
  void shrink_file() { train_on_changing_file(folder_ + "/changing", content(scenario_->rows), false); }

  std::string dyad_;
  std::string failing_calls_;
  std::string folder_;
  std::string model_;
  std::mt19937 random_;
  std::vector<Scenario> scenarios_;
  std::string old_model_;               ///< content of the model file before training, if has_old_model_
  const Scenario* scenario_ = nullptr;  ///< of the current trial
  bool has_old_model_ = false;
  std::string trial_ = "setup";
  ExitStatus status_;
  std::map<std::string, int> trials_by_fault_;
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
    const std::string folder = dyad::trials::new_folder(argv[3]);
    const unsigned seed = argc > 5 ? static_cast<unsigned>(std::stoul(argv[5])) : 1;
    dyad::trials::FaultTrials fault_trials(argv[1], argv[2], folder, seed);
    fault_trials.run(argc > 4 ? std::stoi(argv[4]) : dyad::trials::default_trials);
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
