#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

/// Invalid data, arguments and model files: exit code, message, and unchanged output files.
class BadInput : public CommandTest {
 protected:
  void expect(int exit_code, const std::string& arguments, const std::vector<std::string>& in_message) {
    const std::string model = write("old.dyad", "an old model");
    result = run_dyad(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << "\n" << result.err;
    EXPECT_EQ(result.out, "") << arguments;
    for (const std::string& substring : in_message) EXPECT_TRUE(contains(result.err, substring)) << result.err;
    EXPECT_EQ(content(model), "an old model") << arguments;
  }

  [[nodiscard]] std::string train(const std::string& file, const std::string& more = "") const {
    return "train --quiet " + file + " -m " + path("old.dyad") + " " + more;
  }

  Result result;  ///< of the last expect()
};

TEST_F(BadInput, TablesAreRejectedWithTheLocation) {
  struct Case {
    std::string text;
    int line;  ///< 0: none
    int column;
    std::vector<std::string> in_message;
  };
  const std::string good = "a,b,y\n1,2,3\n2,3,5\n3,4,9\n";
  const Case cases[] = {
      {good + "1,2\n", 5, 0, {}},
      {good + "1,2,3,4\n", 5, 0, {}},
      {good + "1,spam,4\n", 5, 2, {"b", "spam"}},
      {good + "1,2,spam\n", 5, 3, {"y", "spam"}},
      {good + "1,inf,4\n", 5, 2, {}},
      {good + "1,2,nan\n", 5, 3, {}},
      {good + "1,2,\n", 5, 3, {}},
      {good + "1,2,-inf\n", 5, 3, {}},
      {good + "1,\"2,3\n", 5, 0, {}},
      {"", 0, 0, {}},
      {"a,b,y\n", 0, 0, {}},
      {"a,a,y\n1,2,3\n", 1, 0, {}},
      {std::string("\x7f"
                   "ELF\0\0\1",
                   7) +
           good,
       0,
       0,
       {}},
      {"a,y\n1,cat\n2,dog\n3,cow\n4,\n", 5, 2, {}},
  };
  for (const Case& bad : cases) {
    expect(3, train(write("bad.csv", bad.text), "--target y"), bad.in_message);
    EXPECT_TRUE(contains(result.err, "bad.csv")) << result.err;
    if (bad.line > 0) {
      EXPECT_TRUE(names_location(result.err, "bad.csv", bad.line, bad.column)) << result.err;
    }
  }
}

TEST_F(BadInput, LibsvmFilesAreRejectedWithTheLocation) {
  const std::tuple<const char*, int, int> cases[] = {
      {"1 2:1 1:1\n", 1, 7},      {"1 1:1\n1 -3:1\n", 2, 3},
      {"1 2147483647:1\n", 1, 0}, {"1 4294967296:1\n", 1, 0},
      {"1 1:nan\n", 1, 0},        {"inf 1:1\n", 1, 0},
      {"1 1:1 1:2\n", 1, 0},      {"one 1:1\n", 1, 0},
      {"1 1:\n", 1, 0},           {"", 0, 0},
      {"1 a:1\n", 1, 0},
  };
  for (const auto& [text, line, column] : cases) {
    expect(3, train(write("bad.svm", text)), {"bad.svm"});
    if (line > 0) {
      EXPECT_TRUE(names_location(result.err, "bad.svm", line, column)) << result.err;
    }
  }
}

TEST_F(BadInput, TruncatedGzipAndInvalidNpyAreRejected) {
  const std::string rows = write("rows.csv", houses(3000, 1));
  ASSERT_EQ(std::system(("gzip -k " + rows + " && head -c 20000 " + rows + ".gz > " + path("cut.csv.gz")).c_str()), 0);
  expect(3, train(path("cut.csv.gz"), "--target price"), {"cut.csv.gz"});
  expect(3, train(write("bad.npy", "spam and eggs and spam"), "--target-file " + path("bad.npy")), {"bad.npy"});
  ASSERT_EQ(run_dyad("simulate gfm --dim 3 --rank 1 --rows 50 --quiet -o " + path("a.npy")).exit_code, 0);
  ASSERT_EQ(run_dyad("simulate gfm --dim 3 --rank 1 --rows 40 --quiet -o " + path("b.npy")).exit_code, 0);
  expect(3, train(path("a.npy"), "--target-file " + path("b.target.npy")), {"b.target.npy", "50", "40"});
  expect(2, train(path("a.npy")), {"--target-file"});
}

TEST_F(BadInput, ArgumentsAreRejectedByName) {
  const std::string rows = write("rows.csv", "a,b,y\n1,2,3\n2,3,5\n3,4,9\n");
  expect(2, train(rows), {"--target", "a, b, y"});
  expect(2, train(rows, "--target z"), {"rows.csv", "z", "--target", "a, b, y"});
  expect(2, train(rows, "--target y --categorical q"), {"q", "--categorical"});
  expect(2, train(rows, "--target y --rnak 3"), {"--rnak"});
  expect(2, train(rows, "--target y --rank 0"), {"--rank"});
  expect(2, train(rows, "--target y --rank x"), {"--rank", "'x'"});
  expect(2, train(rows, "--target y --kind bilinear"), {"--right"});
  expect(2, train(rows, "--target y --right a"), {"--right"});
  expect(2, train(rows, "--target y --kind phase --rank 2"), {"--rank"});
  expect(2, train(rows, "--target y --kind sensing --task classification"), {"--task"});
  expect(2, train(rows, "--target y --hash-bits 40"), {"--hash-bits", "40"});
  expect(2, train(rows, "--target y --threads 1000"), {"--threads", "1000"});
  expect(2, train(rows, "--target y --format libsvm"), {"--target"});
  expect(2, train(path("rows.xyz"), "--target y"), {"--format"});
  expect(2, "train --quiet " + rows + " --target y", {"--model"});
  expect(2, "train --quiet " + rows + " --target y -m " + rows, {"rows.csv"});
  expect(1, train(path("none.csv"), "--target y"), {"none.csv", "No such file"});
  expect(1, "train --quiet " + rows + " --target y -m " + path("no/folder/m.dyad"), {"no/folder/m.dyad"});
  expect(1, train(write("large.svm", "1 2000000000:1\n2 1:1\n")), {"2000000001", "--hash-bits"});
}

TEST_F(BadInput, FullDiskIsReportedWithThePath) {
  const std::string rows = write("rows.csv", houses(500, 1));
  expect(1, "train --quiet " + rows + " --target price -m /dev/full", {"/dev/full", "No space left"});
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target price -m " + path("m.dyad")).exit_code, 0);
  expect(1, "predict --quiet -m " + path("m.dyad") + " " + rows + " -o /dev/full", {"/dev/full", "No space left"});
  expect(1, "inspect " + path("m.dyad") + " --export /dev/full", {"/dev/full", "No space left"});
}

TEST_F(BadInput, InvalidModelFilesAreRejected) {
  const std::string rows = write("rows.csv", houses(500, 1));
  const std::string model = path("m.dyad");
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target price -m " + model).exit_code, 0);
  const std::string bytes = content(model);
  for (const std::string& bad : {write("cut.dyad", bytes.substr(0, bytes.size() / 2)), write("empty.dyad", ""), rows,
                                 path("none.dyad"), write("longer.dyad", bytes + "x"), path("")})
    for (const std::string& arguments :
         {"predict -m " + bad + " " + rows, "evaluate -m " + bad + " " + rows, "inspect " + bad,
          "train --resume --quiet -m " + bad + " " + write("r.csv", houses(9, 1))})
      expect(3, arguments, {});
}

/// Text of an untrusted model file is escaped, and the spectrum is drawn with bars of bounded length.
TEST_F(BadInput, ModelTextIsEscaped) {
  const std::string hostile = "\x1b[31mred\x07\x7f";
  std::string rows = "a,b" + hostile + ",c,y" + hostile + "\n";
  for (int i = 0; i < 60; ++i)
    rows += fmt::format("{},{},{},{}\n", i % 7, i % 5, i % 2 == 0 ? "x" + hostile : "z", (i % 7) * (i % 5));
  const std::string table = write("rows.csv", rows);
  ASSERT_EQ(run_dyad("train --quiet --rank 2 " + table + " --target 'y" + hostile + "' -m " + path("m.dyad")).exit_code,
            0);
  std::string bytes = content(path("m.dyad"));
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  std::string arrays = bytes.substr(8 + length);
  const double spectrum[] = {1e-300, -1};
  std::memcpy(arrays.data() + header.at("spectrum").at("data_offsets").at(0).get<std::size_t>(), spectrum, 16);
  header["__metadata__"]["training.rows"] = hostile + "\n";
  header["__metadata__"]["format_version"] = "1";  // version 1 has no checksum
  header["__metadata__"].erase("checksum");
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  length = text.size();
  bytes.replace(0, bytes.size(), std::string(8, ' ') + text + arrays);
  std::memcpy(bytes.data(), &length, 8);
  const std::string model = write("untrusted.dyad", bytes);

  const Result shown = run_dyad("inspect " + model);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out.find_first_of("\x1b\x07\x7f"), std::string::npos) << shown.out;
  const std::string escaped = "\\u001B[31mred\\u0007\\u007F";
  for (const std::string& text_of_model : {"b" + escaped, "c=x" + escaped, escaped + "\\n", std::string("1e-300 \n")})
    EXPECT_TRUE(contains(shown.out, text_of_model)) << text_of_model << "\n" << shown.out;
  EXPECT_NE(shown.out.find(" " + std::string(40, '-') + "\n"), std::string::npos) << shown.out;
  EXPECT_EQ(run_json("inspect " + model).at("training").at("rows"), hostile + "\n");
  for (const std::string& arguments : {"predict -m " + model + " " + write("other.csv", "a\n1\n"),
                                       "train --resume -m " + path("m.dyad") + " " + table}) {
    const Result failed = run_dyad(arguments);
    EXPECT_TRUE(contains(failed.err, escaped)) << failed.err;
    EXPECT_EQ(failed.err.find_first_of("\x1b\x07\x7f"), std::string::npos) << failed.err;
  }
}

TEST_F(BadInput, RowsMustMatchTheModel) {
  const std::string rows = write("rows.csv", houses(500, 1));
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target price -m " + path("m.dyad")).exit_code, 0);
  expect(2, "predict -m " + path("m.dyad") + " " + write("other.csv", "a,b\n1,2\n"), {"other.csv"});
  expect(2, "evaluate -m " + path("m.dyad") + " " + write("no_target.csv", without_column(content(rows), "price")),
         {"no_target.csv", "price"});
  expect(2, "predict -m " + path("m.dyad") + " " + write("rows.svm", "1 1:1\n"), {"rows.svm"});
  expect(2, "predict --labels -m " + path("m.dyad") + " " + rows, {"--labels"});
  expect(2, "predict --json -m " + path("m.dyad") + " " + rows, {"--json"});
  expect(2, "predict -m " + path("m.dyad") + " " + rows + " -o " + rows, {"rows.csv"});
  // A file with a header only has zero predictions.
  const Result none = run_dyad("predict --quiet -m " + path("m.dyad") + " " +
                               write("header.csv", content(rows).substr(0, content(rows).find('\n') + 1)));
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(none.out, "");
}

TEST_F(BadInput, FailedPredictionKeepsTheOldFile) {
  const std::string rows = write("rows.csv", houses(5000, 1));
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target price -m " + path("m.dyad")).exit_code, 0);
  const std::string predictions = write("p.txt", "old predictions");
  const std::string broken = write("broken.csv", content(rows) + "spam\n");
  expect(3, "predict --quiet -m " + path("m.dyad") + " " + broken + " -o " + predictions, {});
  EXPECT_TRUE(names_location(result.err, "broken.csv", 5002)) << result.err;
  EXPECT_EQ(content(predictions), "old predictions");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path(""))) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"broken.csv", "m.dyad", "old.dyad", "p.txt", "rows.csv"}));
}

/// Reading a pipe could block forever, because loading a model does not poll interrupts.
TEST_F(BadInput, ModelsMustBeRegularFiles) {
  ASSERT_EQ(mkfifo(path("never.dyad").c_str(), 0600), 0);
  expect(3, "inspect " + path("never.dyad"), {"never.dyad"});
  expect(3, "inspect " + folder(), {folder()});
  expect(3, "inspect " + path("missing.dyad"), {"missing.dyad"});
}

/// The limit is 1e70 in every format.
TEST_F(BadInput, NumbersAboveTheLimitAreRejected) {
  for (const char* cell : {"1e200", "-1e71"}) {
    expect(3, "train " + write("large.csv", std::string("a,y\n1,2\n") + cell + ",3\n") + " --target y -m " + path("f"),
           {"1e70"});
    EXPECT_TRUE(names_location(result.err, "large.csv", 3, 1)) << result.err;
  }
  expect(3, "train " + write("large.csv", "a,y\n1,2\n2,1e71\n") + " --target y -m " + path("f"), {"1e70"});
  EXPECT_TRUE(names_location(result.err, "large.csv", 3)) << result.err;
  expect(3, "train " + write("large.svm", "1 1:1e71\n2 1:1\n") + " -m " + path("f"), {});
  EXPECT_TRUE(names_location(result.err, "large.svm", 1)) << result.err;
}

/// `dyad predict ... | head` ends silently.
TEST_F(BadInput, BrokenPipeIsNoError) {
  const std::string rows = write("rows.csv", houses(20000, 1));
  ASSERT_EQ(run_dyad("train --quiet --passes 1 " + rows + " --target price -m " + path("m.dyad")).exit_code, 0);
  const std::string errors = path("errors");
  const Result piped = run_dyad("predict -m " + path("m.dyad") + " " + rows + " 2>" + errors + " | head -n 1");
  EXPECT_EQ(piped.out.find('\n'), piped.out.size() - 1);
  EXPECT_EQ(content(errors), "");
}

}  // namespace
}  // namespace dyad::test
