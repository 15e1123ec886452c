#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

/// Inputs that stall, never end, are too large or contain control characters.
class Reading : public CommandTest {
 protected:
  [[nodiscard]] std::string pipe(const std::string& name) const {
    EXPECT_EQ(mkfifo(path(name).c_str(), 0600), 0);
    return path(name);
  }

  /// Interrupts `dyad ARGUMENTS` after 0.5 s. Exit code 130 if the interrupt ends the command; else it is killed 10 s
  /// later, with exit code 137.
  static Result interrupted(const std::string& arguments) {
    return run_shell("timeout --preserve-status -k 10 -s INT 0.5 " DYAD_COMMAND " " + arguments);
  }

  /// Interrupts `dyad ARGUMENTS PIPE` after it has opened the pipe and these rows have been written to it.
  [[nodiscard]] Result interrupted_after(const std::string& rows, const std::string& arguments) const {
    const std::string fifo = pipe("stalled.csv");
    Result result = run_shell("(" DYAD_COMMAND " " + arguments + " " + fifo + " & pid=$!; exec 3>" + fifo + "; cat " +
                              write("begin", rows) + " >&3; sleep 0.3; kill -INT $pid; wait $pid)");
    std::filesystem::remove(fifo);
    return result;
  }

  [[nodiscard]] std::string model(const std::string& rows = houses(300, 1), const std::string& target = "price") const {
    const std::string file = path("model.dyad");
    EXPECT_EQ(
        run_dyad("train --quiet " + write("train.csv", rows) + " --target " + target + " --solver kalman -m " + file)
            .exit_code,
        0);
    return file;
  }
};

TEST_F(Reading, InterruptEndsTheWaitForAWriter) {
  const std::string trained = model();
  const std::string rows = write("rows.csv", houses(100, 1));
  const std::string array = write("x.npy", "");
  const auto target = [&](const std::string& data) { return "train " + data + " -m " + path("m") + " --target price"; };
  ASSERT_EQ(run_dyad("simulate gfm --quiet --dim 3 --rank 1 --rows 50 -o " + array).exit_code, 0);
  for (const std::string& arguments :
       {target(pipe("a.csv")), target(rows + " --config " + pipe("b.toml")), target(rows + " " + pipe("c.csv")),
        "train " + array + " --target-file " + pipe("d.npy") + " -m " + path("m"),
        "predict -m " + trained + " " + pipe("e.csv"), "evaluate -m " + trained + " " + pipe("f.csv")}) {
    const Result result = interrupted(arguments);
    EXPECT_EQ(result.exit_code, 130) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
  }
}

TEST_F(Reading, ValidationRowsMustBeInARegularFile) {
  const Result result = interrupted("train " + write("rows.csv", houses(100, 1)) + " --target price -m " + path("m") +
                                    " --validation " + pipe("v.csv"));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_TRUE(contains(result.err, "v.csv")) << result.err;
}

TEST_F(Reading, InterruptedEvaluationHasNoMetrics) {
  const std::string trained = model();
  for (const int rows : {0, 1, 6000}) {
    const std::string text = rows > 0 ? houses(rows, 1) : "";
    const Result plain = interrupted_after(text, "evaluate -m " + trained);
    EXPECT_EQ(plain.exit_code, 130) << plain.err;
    EXPECT_EQ(plain.out, "");
    const Result result = interrupted_after(text, "evaluate --quiet --json -m " + trained);
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_EQ(result.err, "");
    const auto fields = nlohmann::json::parse(result.out);
    EXPECT_EQ(fields.at("outcome"), "interrupted");
    EXPECT_FALSE(fields.contains("metrics")) << result.out;
  }
  const Result train = interrupted_after(houses(10, 1), "train --quiet --json --target price -m " + path("m"));
  EXPECT_EQ(train.exit_code, 130);
  for (const char* name : {"metrics", "progressive"})
    EXPECT_FALSE(nlohmann::json::parse(train.out).contains(name)) << train.out;
}

TEST_F(Reading, RowsBeyondTheLimitsAreRejected) {
  const std::string trained = model();
  const std::string rows = write("rows.csv", houses(100, 2));
  for (const std::string& command :
       {"train --target price -m " + path("m") + " ", "predict -m " + trained + " ", "evaluate -m " + trained + " "}) {
    for (const auto& [option, limit] : {std::pair{"--max-columns", 3}, {"--max-line-bytes", 20}}) {
      const std::string arguments = command + rows + " " + option + " ";
      const Result result = run_dyad(arguments + std::to_string(limit));
      EXPECT_EQ(result.exit_code, 3) << arguments << result.err;
      EXPECT_TRUE(contains(result.err, option) && contains(result.err, std::to_string(limit))) << result.err;
      EXPECT_EQ(run_dyad(arguments + "0").exit_code, 2);
    }
    EXPECT_EQ(run_dyad(command + rows + " --quiet --max-columns 4 --max-line-bytes 60").exit_code, 0) << command;
  }
  const Result validation =
      run_dyad("train --target price -m " + path("m") + " " + rows + " --max-columns 4 --validation " +
               write("wide.csv", "a,b,area,rooms,district,price\n1,1,1,1,1,1\n"));
  EXPECT_EQ(validation.exit_code, 3) << validation.err;
}

TEST_F(Reading, EndlessConfigFileIsRejected) {
  const Result result = interrupted("train rows.csv -m model.dyad --config /dev/zero");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "/dev/zero")) << result.err;
}

TEST_F(Reading, ControlCharactersOfLabelsAndNamesAreEscaped) {
  const std::string negative = "\"a\nb\"";
  const std::string positive = "b\x1b[31m\\n";
  std::string rows = mails(300, 1, negative, positive);
  const std::string name = "len\xe2\x80\xaegth\x1b";
  rows.replace(0, std::string("length").size(), name);
  const std::string trained = model(rows, "kind");
  const Result predicted = run_dyad("predict --quiet --labels -m " + trained + " " + path("train.csv"));
  std::set<std::string> labels;
  std::istringstream lines(predicted.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) labels.insert(line);
  EXPECT_EQ(count, 300);
  EXPECT_EQ(labels, (std::set<std::string>{"a\\nb", "b\\u001B[31m\\\\n"}));
  const Result inspected = run_dyad("inspect " + trained);
  EXPECT_TRUE(contains(inspected.out, "len\\u202Egth\\u001B")) << inspected.out;
  EXPECT_TRUE(contains(inspected.out, "b\\u001B[31m\\n")) << inspected.out;
  const Result train = run_dyad("train " + path("train.csv") + " --target kind --passes 1 -m " + trained);
  for (const std::string& text : {inspected.out, train.err})
    for (const char* raw : {"\x1b", "\xe2\x80\xae", "a\nb"}) EXPECT_FALSE(contains(text, raw)) << text;
}

TEST_F(Reading, ResumeRejectsUnknownIgnoredColumns) {
  const std::string trained = model();
  const std::string before = content(trained);
  const std::string rows = write("more.csv", "note," + houses(1, 1).substr(0, 26) + "x,70,4,d1,2000\nx,71,3,d1,1900\n");
  const std::string command = "train --quiet --resume " + rows + " -m " + trained + " --ignore ";
  const Result result = run_dyad(command + "nope");
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_TRUE(contains(result.err, "nope") && contains(result.err, "--ignore")) << result.err;
  EXPECT_EQ(content(trained), before);
  EXPECT_EQ(run_dyad(command + "note").exit_code, 0);

  const std::string sparse = write("rows.svm", "1 1:1\n2 2:1\n3 1:1 2:1\n");
  ASSERT_EQ(run_dyad("train --quiet " + sparse + " -m " + path("sparse.dyad")).exit_code, 0);
  EXPECT_EQ(run_dyad("train --quiet --resume " + sparse + " -m " + path("sparse.dyad") + " --ignore nope").exit_code,
            2);
}

/// The model and the predictions are the same bytes for any number of threads, also from standard input.
TEST_F(Reading, ThreadsDoNotChangeTheResult) {
  std::string rows = "user,item,size,y\n";
  for (int i = 0; i < 20000; ++i)
    rows += "u" + std::to_string(i * 7919 % 3001) + ",\"item " + std::to_string(i % 97) + "\"," +
            std::to_string(i % 13) + "," + std::to_string((i * 31 % 7 + i % 97) % 5) + "\n";
  const std::string file = write("rows.csv", rows);
  const std::string options = " --target y --solver kalman --passes 1 --rank 4 --quiet -m ";
  std::string model;
  std::string predictions;
  for (const std::string threads : {"1", "2", "4"})
    for (const bool is_pipe : {false, true}) {
      const std::string input = is_pipe ? "- --format csv < " + file : file;
      const std::string path_of_model = path("model.dyad");
      ASSERT_EQ(run_dyad("train --threads " + threads + options + path_of_model + " " + input).exit_code, 0);
      const Result predicted =
          run_dyad("predict --std --quiet --threads " + threads + " -m " + path_of_model + " " + input);
      ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
      if (model.empty()) {
        model = content(path_of_model);
        predictions = predicted.out;
        EXPECT_EQ(std::count(predictions.begin(), predictions.end(), '\n'), 20000);
      }
      EXPECT_TRUE(content(path_of_model) == model) << threads << " threads";
      EXPECT_TRUE(predicted.out == predictions) << threads << " threads";
    }
}

}  // namespace
}  // namespace dyad::test
