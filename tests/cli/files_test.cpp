#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/generated_data.h"

namespace dyad::test {
namespace {

/// Treatment of input and output files.
class Files : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    rows = write("rows.csv", houses(300, 1));
    ASSERT_EQ(run_dyad(train + " " + rows + " -m " + model).exit_code, 0);
  }

  const std::string train = "train --quiet --target price";
  const std::string model = path("m.dyad");
  std::string rows;
};

TEST_F(Files, StandardOutputDevicesAreAppendedTo) {
  const std::string all = write("all", "before\n");
  const std::string predict = "predict --quiet -m " + model + " " + rows;
  const std::string once = run_dyad(predict).out;
  ASSERT_FALSE(once.empty());
  for (const char* device : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"})
    ASSERT_EQ(run_dyad(predict + " -o " + device + " >>" + all).exit_code, 0);
  EXPECT_EQ(content(all), "before\n" + once + once + once);
  EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
}

/// The path of a deleted file does not exist, but its descriptor can be written.
TEST_F(Files, DescriptorOfDeletedFileIsWritten) {
  const Result result = run_shell("exec 3>" + path("gone") + "; rm " + path("gone") + "; " + DYAD_COMMAND +
                                  " predict --quiet -m " + model + " " + rows + " -o /dev/fd/3 && cat /proc/$$/fd/3");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run_dyad("predict --quiet -m " + model + " " + rows).out);
  EXPECT_FALSE(std::filesystem::exists(path("gone")));
}

TEST_F(Files, OutputsNeverReplaceInputs) {
  ASSERT_EQ(run_dyad("simulate gfm --dim 3 --rank 1 --rows 50 --quiet -o " + path("x.npy")).exit_code, 0);
  const std::string targets = path("x.target.npy");
  const std::string config = write("config", "rank = 2\n");
  const std::string validation = write("validation.csv", houses(50, 2));
  std::filesystem::create_hard_link(rows, path("hard.csv"));
  const std::string with_targets = path("x.npy") + " --target-file " + targets;
  for (const std::string& command :
       {"train --quiet " + with_targets + " -m " + targets,
        "predict --quiet " + with_targets + " -m " + model + " -o " + targets,
        train + " - --format csv -m " + rows + " <" + rows, train + " " + rows + " -m " + path("hard.csv"),
        train + " " + rows + " --validation " + validation + " -m " + validation,
        train + " " + rows + " --config " + config + " -m " + config,
        "predict --quiet -m " + model + " - --format csv -o " + rows + " <" + rows,
        "predict --quiet -m " + model + " " + rows + " --config " + config + " -o " + config,
        "predict --quiet -m " + model + " " + rows + " >>" + rows,
        "inspect " + model + " --config " + config + " --export " + config,
        "simulate gfm --dim 3 --rank 1 --rows 5 --format csv -o " + path("z") + " --truth " + path("z"),
        "simulate gfm --dim 3 --rank 1 --rows 5 --format csv -o " + path("z") + " --truth " + path("./z"),
        "simulate gfm --dim 3 --rank 1 --rows 5 --format csv --config " + config + " -o " + config}) {
    std::vector<std::string> before;
    for (const std::string& file : {rows, targets, config, validation, model}) before.push_back(content(file));
    EXPECT_EQ(run_dyad(command).exit_code, 2) << command;
    std::size_t i = 0;
    for (const std::string& file : {rows, targets, config, validation, model})
      EXPECT_EQ(content(file), before[i++]) << command;
    EXPECT_FALSE(std::filesystem::exists(path("z"))) << command;
  }
}

TEST_F(Files, ConcurrentResumeIsRejected) {
  ASSERT_EQ(mkfifo(path("pipe.csv").c_str(), 0600), 0);
  const std::string resume = std::string(DYAD_COMMAND) + " train --quiet --resume -m " + model;
  // The second process starts while the first waits for rows.
  const Result result =
      run_shell("(" + resume + " " + path("pipe.csv") + " & first=$!; exec 3>" + path("pipe.csv") + "; head -n 1 " +
                rows + " >&3; sleep 0.3; " + resume + " " + rows + "; echo second $?; tail -n +2 " + rows +
                " >&3; exec 3>&-; wait $first; echo first $? $first)");
  EXPECT_NE(result.out.find("second 1\n"), std::string::npos) << result.out << result.err;
  EXPECT_NE(result.out.find("first 0 "), std::string::npos) << result.out << result.err;
  const std::string first = result.out.substr(result.out.rfind(' ') + 1);
  EXPECT_NE(result.err.find(first.substr(0, first.size() - 1)), std::string::npos) << result.err;
  EXPECT_EQ(run_json("inspect " + model).at("training").at("rows"), "600");
  EXPECT_EQ(run_dyad("train --quiet --resume -m " + model + " " + rows).exit_code, 0);
}

/// The next opened file would get the descriptor of a closed standard error, and receive the messages.
TEST_F(Files, ClosedStandardDescriptorsAreNotReused) {
  ASSERT_EQ(run_dyad("train --target price --checkpoint-every 100 --memory 1000 " + rows + " -m " + path("open.dyad"))
                .exit_code,
            0);
  for (const char* closed : {"2>&-", "<&- 2>&-", "0<&- 1>&- 2>&-"}) {
    ASSERT_EQ(
        run_shell(std::string("(exec ") + DYAD_COMMAND + " train --target price --checkpoint-every 100 --memory 1000 " +
                  rows + " -m " + path("closed.dyad") + ") " + closed)
            .exit_code,
        0)
        << closed;
    EXPECT_EQ(content(path("closed.dyad")), content(path("open.dyad"))) << closed;
    ASSERT_EQ(run_shell(std::string("(exec ") + DYAD_COMMAND + " predict -m " + model + " " + rows + " -o " +
                        path("out") + ") " + closed)
                  .exit_code,
              0)
        << closed;
    EXPECT_EQ(content(path("out")), run_dyad("predict --quiet -m " + model + " " + rows).out) << closed;
  }
}

TEST_F(Files, NewFilesHaveTheModeOfTheUmask) {
  for (const auto& [mask, mode] : {std::pair{"027", 0640}, {"077", 0600}, {"000", 0666}}) {
    std::filesystem::remove(path("out"));
    ASSERT_EQ(
        run_dyad("predict --quiet -m " + model + " " + rows + " -o " + path("out"), std::string("umask ") + mask + "; ")
            .exit_code,
        0);
    struct stat status {};
    ASSERT_EQ(stat(path("out").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, static_cast<mode_t>(mode)) << mask;
  }
}

TEST_F(Files, VerifyDetectsDamage) {
  const std::string bytes = content(model);
  EXPECT_EQ(run_dyad("inspect --verify " + model).exit_code, 0);
  EXPECT_TRUE(run_json("inspect --verify " + model).at("verified").get<bool>());
  std::string damaged = bytes;
  damaged[damaged.size() - 3] = static_cast<char>(damaged[damaged.size() - 3] ^ 4);
  for (const std::string& command :
       {std::string("inspect --verify "), std::string("inspect "), "predict " + rows + " -m "})
    EXPECT_EQ(run_dyad(command + write("damaged.dyad", damaged)).exit_code, 3) << command;
}

}  // namespace
}  // namespace dyad::test
