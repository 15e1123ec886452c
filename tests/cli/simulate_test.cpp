#include <cstring>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command.h"

namespace dyad::test {
namespace {

using nlohmann::json;

class SimulateCommand : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] auto file_count() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
  const std::string folder =
      testing::TempDir() + "simulate_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(SimulateCommand, OutputDoesNotDependOnThreads) {
  for (const char* name : {"rows.svm", "rows.csv", "rows.npy"}) {
    const std::string path = folder + "/" + name;
    std::string first;
    for (const char* threads : {"1", "2", "3"}) {
      const Result result = run_dyad("simulate gfm --dim 30 --rank 2 --noise 0.1 --rows 20000 --seed 3 --quiet -o " +
                                     path + " --threads " + threads);
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err + result.out, "");
      if (first.empty()) first = content(path);
      EXPECT_EQ(content(path), first);
    }
    EXPECT_GT(first.size(), 20000 * 30 * 8);
  }
}

TEST_F(SimulateCommand, StandardOutputEqualsTheFile) {
  const std::string arguments = "simulate bilinear --dim 3x4 --rank 2 --rows 50 --format csv --quiet -o ";
  ASSERT_EQ(run_dyad(arguments + folder + "/rows.csv").exit_code, 0);
  const std::string text = run_dyad(arguments + "-").out;
  EXPECT_EQ(text, content(folder + "/rows.csv"));
  EXPECT_EQ(text.substr(0, text.find('\n')), "left.1,left.2,left.3,right.1,right.2,right.3,right.4,y");
}

TEST_F(SimulateCommand, PlantedModelFitsTheRowsInEveryFormat) {
  const std::string truth = folder + "/truth.dyad";
  for (const char* problem :
       {"bilinear --dim 2x3 --rank 2 --intercept 1.5", "gfm --dim 3 --rank 1 --diagonal free", "phase --dim 4",
        "sensing --dim 5 --rank 2 --condition 3", "gfm --dim 4 --rank 2 --diagonal zero --intercept -7"})
    for (const std::string name : {"rows.csv", "rows.tsv", "rows.svm", "rows.npy"}) {
      const std::string rows = folder + "/" + name;
      ASSERT_EQ(run_dyad("simulate " + std::string(problem) + " --rows 500 --quiet -o " + rows + " --truth " + truth)
                    .exit_code,
                0);
      const Result result = run_dyad("evaluate --json -m " + truth + " " + rows +
                                     (name == "rows.npy" ? " --target-file " + folder + "/rows.target.npy" : ""));
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_LT(json::parse(result.out).at("metrics").at("rmse").get<double>(), 1e-12) << problem << " " << name;
    }
}

TEST_F(SimulateCommand, AllFormatsContainTheSameRows) {
  const std::string arguments = "simulate gfm --dim 3 --rank 1 --rows 7 --quiet -o " + folder;
  for (const char* name : {"/rows.csv", "/rows.npy", "/rows.svm"}) ASSERT_EQ(run_dyad(arguments + name).exit_code, 0);
  const auto numbers = [](const std::string& bytes, std::size_t count) {
    std::vector<double> values(count);
    std::memcpy(values.data(), bytes.data() + bytes.size() - count * sizeof(double), count * sizeof(double));
    return values;
  };
  const auto x = numbers(content(folder + "/rows.npy"), 21);
  const auto y = numbers(content(folder + "/rows.target.npy"), 7);
  std::istringstream csv(content(folder + "/rows.csv"));
  std::istringstream svm(content(folder + "/rows.svm"));
  std::string line;
  std::getline(csv, line);
  for (std::size_t row = 0; row < 7; ++row) {
    std::getline(csv, line);
    std::istringstream cells(line);
    std::getline(svm, line);
    std::istringstream words(line);
    std::string cell;
    words >> cell;
    EXPECT_EQ(std::stod(cell), y[row]);
    for (std::size_t j = 0; j < 3; ++j) {
      std::getline(cells, cell, ',');
      EXPECT_EQ(std::stod(cell), x[3 * row + j]);
      words >> cell;
      EXPECT_EQ(std::stod(cell.substr(cell.find(':') + 1)), x[3 * row + j]);
    }
    std::getline(cells, cell, ',');
    EXPECT_EQ(std::stod(cell), y[row]);
  }
}

TEST_F(SimulateCommand, LinksAndDevicesAreNotReplaced) {
  const std::string target = folder + "/target.csv";
  std::ofstream(target) << "old";
  std::filesystem::permissions(target, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::create_symlink("target.csv", folder + "/link.csv");
  ASSERT_EQ(run_dyad("simulate gfm --dim 3 --rank 1 --rows 7 --quiet -o " + folder + "/link.csv").exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link.csv"));
  EXPECT_EQ(content(target).substr(0, 9), "x1,x2,x3,");
  EXPECT_EQ(std::filesystem::status(target).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const Result piped = run_dyad("simulate gfm --dim 3 --rank 1 --rows 7 --quiet --format csv -o /dev/stdout | cat");
  EXPECT_EQ(piped.out, content(target));
}

TEST_F(SimulateCommand, JsonHasTheDocumentedFields) {
  const Result result = run_dyad("simulate gfm --dim 5 --rank 1 --rows 100 --json -o " + folder + "/rows.svm");
  const json fields = json::parse(result.out);
  for (const char* field : {"rows", "row_reads", "seconds", "rows_per_second", "peak_rss_bytes"})
    EXPECT_TRUE(fields.at(field).is_number()) << field;
  EXPECT_EQ(fields.at("outcome"), "budget");
  EXPECT_EQ(fields.at("bytes"), content(folder + "/rows.svm").size());
}

TEST_F(SimulateCommand, InvalidArgumentsExitTwoAndWriteNothing) {
  const std::pair<std::string, const char*> cases[] = {
      {"gfm --dim 5 --rank 1 --rows 10 -o " + folder + "/rows.xyz", "--format"},
      {"gfm --dim 5 --rank 1 --rows 0 -o " + folder + "/rows.csv", "--rows"},
      {"gfm --dim 5 --rank 1 -o " + folder + "/rows.csv", "--rows"},
      {"gfm --dim 5 --rank 1 --rows 10", "--output"},
      {"gfm --dim 5x6 --rank 1 --rows 10 -o " + folder + "/rows.csv", "dim"},
      {"bilinear --dim 5 --rank 1 --rows 10 -o " + folder + "/rows.csv", "dim"},
      {"bilinear --dim 5x6 --rank 6 --rows 10 -o " + folder + "/rows.csv", "--rank"},
      {"bilinear --dim 5xsix --rank 6 --rows 10 -o " + folder + "/rows.csv", "dim"},
      {"bilinear --dim 5x6 --rank 2 --diagonal zero --rows 10 -o " + folder + "/rows.csv", "diagonal"},
      {"gfm --dim 5 --rank 1 --rows 10 --format npy -o -", "--target-file"},
      {"gfm --dim 5 --rank 1 --rows 10 --json -o -", "standard output"},
      {"gfm --dim 5 --rank 1 --rows 10 -o " + folder + "/a.csv --truth " + folder + "/a.csv", "/a.csv"},
      {"gfm --dim 5 --rank 1 --rows 10 -o " + folder + "/a.npy --target-file " + folder + "/a.npy", "/a.npy"},
      {"gfm --dim 5 --rank 1 --rows 10 --json -o " + folder + "/a.csv --truth -", "--json"},
      {"bilinear --dim 5x6 --rank 1 --signs positive --rows 10 -o " + folder + "/a.csv", "signs"},
      {"gfm --dim 5 --rank 1 --rows 10 --target-file t -o " + folder + "/rows.csv", "npy"},
      {"gfm --dim 5 --rank 1 --features lumpy --rows 10 -o " + folder + "/rows.csv", "uniform"},
  };
  for (const auto& [arguments, expected] : cases) {
    const Result result = run_dyad("simulate " + arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_NE(result.err.find(expected), std::string::npos) << arguments << "\n" << result.err;
  }
  EXPECT_EQ(file_count(), 0);
}

TEST_F(SimulateCommand, WriteErrorsExitOne) {
  const Result missing = run_dyad("simulate gfm --dim 5 --rank 1 --rows 10 -o " + folder + "/no/rows.csv");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("No such file"), std::string::npos);
  const Result full = run_dyad("simulate gfm --dim 50 --rank 1 --rows 10000 --quiet -o - >/dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.err.find("No space left"), std::string::npos);
}

TEST_F(SimulateCommand, InterruptKeepsTheOldFile) {
  const std::string path = folder + "/rows.svm";
  std::ofstream(path) << "old";
  const Result result = run_dyad("simulate gfm --dim 100 --rank 1 --rows 100000000 --quiet -o " + path +
                                 " & pid=$!; sleep 1; kill -INT $pid; wait $pid");
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(file_count(), 1);
}

TEST_F(SimulateCommand, DefaultRankIsAtMostTheNumberOfFeatures) {
  for (const char* problem : {"gfm --dim 3", "sensing --dim 7", "bilinear --dim 3x2", "phase --dim 2"}) {
    const Result result = run_dyad(std::string("simulate ") + problem + " --rows 2 --quiet -o -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(run_dyad("recover gfm --dim 3 --quiet").exit_code, 0);
  EXPECT_EQ(run_dyad("simulate gfm --dim 3 --rank 8 --rows 2 -o -").exit_code, 2);
}

}  // namespace
}  // namespace dyad::test
