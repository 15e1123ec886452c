#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

using nlohmann::json;

class MultiPassTraining : public CommandTest {
 protected:
  [[nodiscard]] json trained(const std::string& rows, const std::string& options) {
    return run_json("train " + rows + " -m " + path("m.dyad") + " " + options);
  }
  [[nodiscard]] double rmse_on(const std::string& rows) {
    return run_json("evaluate -m " + path("m.dyad") + " " + rows).at("metrics").at("rmse");
  }
};

TEST_F(MultiPassTraining, EachSolverReducesTheLossOfOnePass) {
  const std::string rows = write("rows.csv", ratings(4000, 1));
  const std::string fresh = write("fresh.csv", ratings(4000, 2));
  const std::string options = "--target rating --categorical user,movie --rank 2 ";
  EXPECT_EQ(trained(rows, options + "--passes 1").at("solver"), "kalman");
  const double one_pass = rmse_on(fresh);
  for (const std::string solver : {"auto", "newton", "variational", "sampling"}) {
    const json result = trained(rows, options + "--solver " + solver);
    const bool is_sampled = solver == "auto" || solver == "sampling";
    EXPECT_EQ(result.at("solver"), is_sampled ? "sampling" : solver);
    EXPECT_EQ(result.contains("samples"), is_sampled);
    EXPECT_GT(result.at("passes"), 1);
    EXPECT_GT(result.at("row_reads"), 3 * 4000);
    EXPECT_LT(result.at("held_out").at("multi_pass"), result.at("held_out").at("one_pass"));
    EXPECT_NEAR(result.at("held_out").at("rows"), is_sampled ? 800 : 4000, is_sampled ? 130 : 0);  // 5 standard errors
    EXPECT_LT(rmse_on(fresh), one_pass) << solver;
  }
}

/// Rows of a pipe that were cached before the task became regression have targets of another encoding and are dropped.
TEST_F(MultiPassTraining, PipeThatBecomesRegressionCachesRegressionRowsOnly) {
  std::ostringstream equal_targets;
  std::ostringstream regression;
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 12000; ++i) {
    const double a = normal(random);
    const double b = normal(random);
    (i < 4096 ? equal_targets : regression)
        << a << ',' << b << ',' << (i < 4096 ? 0 : 3 + a + 2 * a * b + 0.1 * normal(random)) << '\n';
  }
  const std::string fresh = write("fresh.csv", "a,b,y\n" + regression.str());
  const std::string rows = write("rows.csv", "a,b,y\n" + equal_targets.str() + regression.str());
  const Result result =
      run_dyad("train - --format csv --target y --passes 3 --quiet -m " + path("m.dyad") + " < " + rows);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(rmse_on(fresh), 0.2);
}

TEST_F(MultiPassTraining, NoiselessRecoveryIsExact) {
  for (const auto& [problem, options] :
       {std::pair<std::string, std::string>{"sensing --dim 12 --rank 2", "--kind sensing --rank 2"},
        {"phase --dim 20", "--kind phase"},
        {"bilinear --dim 8x9 --rank 2", "--kind bilinear --rank 2 --right 'right.*'"},
        {"gfm --dim 12 --rank 2", "--diagonal tied --rank 2"}})
    for (const char* solver : {"auto", "newton"}) {
      ASSERT_EQ(run_dyad("simulate " + problem + " --quiet --rows 120 -o " + path("rows.csv")).exit_code, 0);
      ASSERT_EQ(run_dyad("simulate " + problem + " --quiet --rows 300 -o " + path("more.csv")).exit_code, 0);
      const json result = trained(path("rows.csv"), "--target y " + options + " --solver " + solver);
      EXPECT_LT(rmse_on(path("more.csv")), 1e-12) << problem;
      EXPECT_EQ(result.at("warnings").size(), 0U) << problem;
    }
}

/// The strongest regularization level must not set the factors to 0, from which weaker levels do not recover.
TEST_F(MultiPassTraining, BilinearCategoriesAreFittedByBothSolvers) {
  const std::string rows = write("rows.csv", ratings(6000, 1));
  const std::string fresh = write("fresh.csv", ratings(3000, 2));
  const std::string options =
      "--target rating --categorical user,movie --ignore noise --rank 3 --kind bilinear --right movie ";
  (void)trained(rows, options + "--passes 1");
  const double one_pass = rmse_on(fresh);
  EXPECT_EQ(trained(rows, options).at("solver"), "sampling");
  EXPECT_LT(rmse_on(fresh), one_pass);
  EXPECT_EQ(trained(rows, options + "--solver newton").at("solver"), "newton");
  EXPECT_LT(rmse_on(fresh), one_pass);
}

TEST_F(MultiPassTraining, IntervalsCoverWithFewRowsPerUnknown) {
  const std::string problem = "simulate gfm --dim 20 --rank 2 --noise 0.3 --quiet -o ";
  ASSERT_EQ(run_dyad(problem + path("all.csv") + " --rows 1200").exit_code, 0);
  const std::string text = content(path("all.csv"));
  std::size_t middle = 0;
  for (int i = 0; i <= 200; ++i) middle = text.find('\n', middle) + 1;
  const std::string training = write("training.csv", text.substr(0, middle));
  const std::string fresh = write("fresh.csv", text.substr(0, text.find('\n') + 1) + text.substr(middle));
  for (const char* solver : {"auto", "newton", "variational"}) {
    (void)trained(training, "--target y --rank 4 --solver " + std::string(solver));
    std::istringstream lines(run_dyad("predict --quiet --std -m " + path("m.dyad") + " " + fresh).out);
    double within = 0;
    for (const double y : column_of(content(fresh), "y")) {
      std::string line;
      std::getline(lines, line);
      const std::vector<std::string> cells = cells_of(line);
      within += std::abs(y - std::stod(cells[0])) < 2 * std::stod(cells[1]) ? 0.001 : 0;
    }
    EXPECT_GT(within, 0.85) << solver;
  }
}

TEST_F(MultiPassTraining, CensoredTargetsAreFittedInBothPrecisions) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 3000; ++i) {
    const double a = std::sin(0.1 + 12.9898 * i);
    const double b = std::cos(78.233 * i);
    text += std::to_string(a) + "," + std::to_string(b) + "," +
            std::to_string(std::clamp(0.3 + 2 * a + 2 * a * b, -1.0, 1.0)) + "\n";
  }
  const std::string rows = write("rows.csv", text);
  for (const char* solver : {"kalman", "newton", "variational"})
    for (const char* precision : {"double", "single"}) {
      (void)trained(rows, std::string("--target y --solver ") + solver + " --precision " + precision);
      // One pass with a hierarchical prior; the other solvers iterate.
      EXPECT_LT(rmse_on(rows), std::string(solver) == "kalman" ? 0.07 : 0.05) << solver << " " << precision;
    }
}

TEST_F(MultiPassTraining, FullDiskFallsBackToOnePass) {
  const std::string rows = write("rows.csv", ratings(12000, 1));
  const Result result = run_dyad(
      "train " + rows + " --target rating --categorical user,movie --memory 600K --quiet --json -m " + path("m.dyad"),
      "trap '' XFSZ; ulimit -f 150; ");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json summary = json::parse(result.out);
  EXPECT_EQ(summary.at("passes"), 1);
  ASSERT_EQ(summary.at("warnings").size(), 1U);
}

TEST_F(MultiPassTraining, ValidationFileIsCheckedBeforeTraining) {
  const std::string rows = write("rows.csv", houses(300, 1));
  const std::string other = write("other.csv", "a,b\n1,2\n");
  const std::string empty = write("empty.csv", content(rows).substr(0, content(rows).find('\n') + 1));
  for (const auto& [file, code] : {std::pair<std::string, int>{other, 2}, {empty, 3}}) {
    const Result result =
        run_dyad("train " + rows + " --quiet --target price --validation " + file + " -m " + path("new.dyad"));
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_FALSE(std::filesystem::exists(path("new.dyad")));
  }
  const std::string before = content(empty);
  EXPECT_EQ(run_dyad("train " + rows + " --target price --validation " + empty + " -m " + empty).exit_code, 2);
  EXPECT_EQ(content(empty), before);
}

TEST_F(MultiPassTraining, WarnsIfRequestedPassesDoNotReduceTheLoss) {
  std::string noise = "u,v,y\n";
  for (int i = 0; i < 400; ++i)
    noise += "u" + std::to_string(i % 37) + ",v" + std::to_string((i * 7) % 41) + "," +
             std::to_string(std::sin(12.9898 * i * i)) + "\n";
  const std::string rows = write("rows.csv", noise);
  const json result = trained(rows, "--target y --solver newton");
  EXPECT_EQ(result.at("solver"), "newton");
  const bool is_worse = result.at("held_out").at("multi_pass") >= result.at("held_out").at("one_pass");
  EXPECT_EQ(result.at("warnings").size(), is_worse ? 1U : 0U);
  const json few = trained(write("few.csv", "a,y\n1,2\n2,3\n3,5\n"), "--target y --passes 5");
  EXPECT_EQ(few.at("passes"), 1);
  EXPECT_EQ(few.at("warnings").size(), 1U);
  const json many = trained(write("many.csv", houses(200, 1)), "--target price --solver newton --passes 50");
  EXPECT_EQ(many.at("warnings").size(), 1U);
}

TEST_F(MultiPassTraining, ClassesAreFittedByBothSolvers) {
  const std::string rows = write("rows.csv", mails(3000, 1, "ham", "spam"));
  const std::string fresh = write("fresh.csv", mails(3000, 2, "ham", "spam"));
  const auto logloss = [&](const std::string& options) -> double {
    EXPECT_EQ(run_dyad("train --quiet " + rows + " --target kind -m " + path("m.dyad") + options).exit_code, 0);
    return run_json("evaluate -m " + path("m.dyad") + " " + fresh).at("metrics").at("logloss");
  };
  const double one_pass = logloss(" --passes 1");
  EXPECT_LT(logloss(" --solver newton"), 1.005 * one_pass);  // one pass is nearly optimal here
  EXPECT_LT(logloss(" --solver variational"), 1.005 * one_pass);
  EXPECT_LT(logloss(" --solver sampling"), 1.005 * one_pass);
  const double three_passes = logloss(" --solver newton --passes 3");
  EXPECT_GT(std::abs(three_passes - one_pass), 1e-6);
  EXPECT_LT(three_passes, 1.1 * one_pass);
}

/// Rows cached on disk give the same model as rows cached in memory.
TEST_F(MultiPassTraining, DiskCacheGivesTheSameModel) {
  const std::string rows = write("rows.csv", ratings(9000, 1));
  const std::string options = "--target rating --categorical user,movie --rank 2 --solver newton ";
  const json in_memory = trained(rows, options + "--memory 100M");
  const std::string expected = content(path("m.dyad"));
  const json on_disk = trained(rows, options + "--memory 500K");
  EXPECT_TRUE(content(path("m.dyad")) == expected);
  EXPECT_EQ(on_disk.at("passes"), in_memory.at("passes"));
  for (const auto& entry : std::filesystem::directory_iterator(path("")))
    EXPECT_EQ(entry.path().filename().string().find("cache"), std::string::npos);
  const json too_many = trained(rows, "--target rating --categorical user,movie --memory 200K");
  EXPECT_EQ(too_many.at("passes"), 1);
  ASSERT_EQ(too_many.at("warnings").size(), 1U);
  EXPECT_NE(too_many.at("warnings")[0].get<std::string>().find("--memory"), std::string::npos);
}

TEST_F(MultiPassTraining, MissingCacheFolderFallsBackToOnePass) {
  const std::string rows = write("rows.csv", ratings(9000, 1));
  setenv("TMPDIR", "/missing/folder", 1);
  const json result = trained(rows, "--target rating --categorical user,movie --memory 500K");
  unsetenv("TMPDIR");
  EXPECT_EQ(result.at("passes"), 1);
  ASSERT_EQ(result.at("warnings").size(), 1U);
  EXPECT_NE(result.at("warnings")[0].get<std::string>().find("/missing/folder"), std::string::npos);
}

TEST_F(MultiPassTraining, ValidationFileSelectsTheLevel) {
  const std::string rows = write("rows.csv", houses(3000, 1));
  const std::string fresh = write("fresh.csv", houses(1000, 2));
  const json result = trained(rows, "--target price --rank 2 --validation " + fresh);
  EXPECT_EQ(result.at("held_out").at("rows"), 1000);
  EXPECT_NEAR(result.at("held_out").at("multi_pass"), result.at("validation").at("rmse").get<double>(), 1e-9);
}

TEST_F(MultiPassTraining, MakesTheRequestedNumberOfPasses) {
  const std::string rows = write("rows.csv", houses(500, 1));
  for (const int passes : {1, 2, 5}) {
    const json result = trained(rows, "--target price --rank 2 --passes " + std::to_string(passes));
    EXPECT_EQ(result.at("passes"), passes);
    EXPECT_FALSE(result.contains("held_out"));
  }
}

TEST_F(MultiPassTraining, ProgressTableHasTheDocumentedColumns) {
  const std::string rows = write("rows.csv", ratings(3000, 1));
  const std::string shown =
      run_dyad("train " + rows + " --target rating --categorical user,movie --rank 8 -m " + path("m.dyad")).err;
  for (const char* label : {"level", "objective", "held-out", "seconds", "\nmulti-pass ", "\nfitted by "})
    EXPECT_TRUE(contains(shown, label)) << label << "\n" << shown;
}

TEST_F(MultiPassTraining, ResumesFromTheMultiPassModel) {
  const std::string rows = write("rows.csv", ratings(600, 1));
  const std::string more = write("more.csv", ratings(4000, 2));
  const std::string fresh = write("fresh.csv", ratings(3000, 3));
  (void)trained(rows, "--target rating --categorical user,movie --rank 2");
  const double before = rmse_on(fresh);
  const json resumed = run_json("train " + more + " --resume -m " + path("m.dyad"));
  EXPECT_EQ(resumed.at("all_rows"), 4600);
  EXPECT_EQ(resumed.at("passes"), 1);
  EXPECT_LT(rmse_on(fresh), before);
}

TEST_F(MultiPassTraining, IncompatibleOptionsAreRejected) {
  const std::string rows = write("rows.csv", houses(100, 1));
  for (const char* options :
       {"--passes 0", "--passes 3 --solver moment", "--passes 1 --solver newton", "--solver newton --memory 0",
        "--passes 3 --forget 100", "--solver variational --diagonal tied", "--solver variational --kind sensing",
        "--solver sampling --diagonal tied", "--solver sampling --kind sensing", "--solver sampling --passes 3",
        "--samples 10", "--solver sampling --samples 0", "--solver sampling --memory 0"}) {
    const Result result =
        run_dyad("train " + rows + " --target price -m " + path("m.dyad") + " " + std::string(options));
    EXPECT_EQ(result.exit_code, 2) << options;
    EXPECT_FALSE(result.err.empty());
  }
}

TEST_F(MultiPassTraining, SmallAndDegenerateFilesGiveFinitePredictions) {
  const std::string five = "a,b,y\n1,2,3\n2,1,4\n3,5,1\n4,4,2\n0,1,7\n";
  std::string one_feature = "a,y\n";
  std::string wide = "y";
  std::string same = "a,b,c,y\n";
  std::string constant = "a,y\n";
  for (int i = 0; i < 60; ++i) {
    const double a = 0.1 * i - 3;
    one_feature += std::to_string(a) + "," + std::to_string(a * a) + "\n";
    same += std::to_string(a) + "," + std::to_string(a) + "," + std::to_string(i % 7) + "," +
            std::to_string(a * (i % 7)) + "\n";
    constant += std::to_string(a) + ",4\n";
  }
  for (int j = 0; j < 80; ++j) wide += ",f" + std::to_string(j);
  for (int i = 0; i < 20; ++i) {
    wide += "\n" + std::to_string(i % 5);
    for (int j = 0; j < 80; ++j) wide += "," + std::to_string((i * 37 + j * 17 + i * j) % 11);
  }
  for (const auto& [name, text] : {std::pair<std::string, std::string>{"five.csv", five},
                                   {"one_feature.csv", one_feature},
                                   {"wide.csv", wide + "\n"},
                                   {"same.csv", same},
                                   {"constant.csv", constant}}) {
    const std::string rows = write(name, text);
    for (const char* solver : {"auto", "anova", "newton", "sampling", "variational"}) {
      const Result result = run_dyad("train " + rows + " --target y --quiet --json -m " + path("m.dyad") +
                                     " --solver " + std::string(solver));
      ASSERT_EQ(result.exit_code, 0) << name << " " << solver << " " << result.err;
      for (const double value : numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + rows).out)) {
        EXPECT_GT(value, -20) << name;
        EXPECT_LT(value, 50) << name;
      }
    }
  }
  (void)trained(path("one_feature.csv"), "--target y --rank 1");
  EXPECT_LT(rmse_on(path("one_feature.csv")), 1e-4);
  (void)trained(path("same.csv"), "--target y --rank 3");
  EXPECT_LT(rmse_on(path("same.csv")), 1e-3);
}

}  // namespace
}  // namespace dyad::test
