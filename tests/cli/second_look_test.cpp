#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/made_data.h"

namespace dyad::test {
namespace {

using nlohmann::json;

class SecondLook : public InFolderOfFiles {
 protected:
  [[nodiscard]] json trained(const std::string& rows, const std::string& options) {
    return run_json("train " + rows + " -m " + path("m.dyad") + " " + options);
  }
  [[nodiscard]] double rmse_on(const std::string& rows) {
    return run_json("evaluate -m " + path("m.dyad") + " " + rows).at("metrics").at("rmse");
  }
};

TEST_F(SecondLook, EachSolverBeatsOnePassOnFreshRows) {
  const std::string rows = write("rows.csv", ratings(4000, 1));
  const std::string fresh = write("fresh.csv", ratings(4000, 2));
  const std::string options = "--target rating --categorical user,movie --rank 2 ";
  EXPECT_EQ(trained(rows, options + "--passes 1").at("solver"), "kalman");
  const double one_pass = rmse_on(fresh);
  for (const std::string solver : {"auto", "newton", "variational"}) {
    const json result = trained(rows, options + "--solver " + solver);
    EXPECT_EQ(result.at("solver"), solver == "newton" ? "newton" : "variational");
    EXPECT_GT(result.at("passes"), 1);
    EXPECT_GT(result.at("row_reads"), 3 * 4000);
    EXPECT_LT(result.at("held_out").at("refined"), result.at("held_out").at("one_pass"));
    EXPECT_EQ(result.at("held_out").at("rows"), 4000);
    EXPECT_LT(rmse_on(fresh), one_pass) << solver;
  }
}

TEST_F(SecondLook, AllKindsOfRecoveryAreExactFromAFile) {
  for (const auto& [problem, options] :
       {std::pair<std::string, std::string>{"sensing --dim 12 --rank 2", "--kind sensing --rank 2"},
        {"phase --dim 20", "--kind phase"},
        {"bilinear --dim 8x9 --rank 2", "--kind bilinear --rank 2 --right 'right.*'"},
        {"gfm --dim 12 --rank 2", "--diagonal tied --rank 2"}}) {
    ASSERT_EQ(run_dyad("simulate " + problem + " --quiet --rows 400 -o " + path("rows.csv")).exit_code, 0);
    const json result = trained(path("rows.csv"), "--target y --solver newton " + options);
    EXPECT_LT(rmse_on(path("rows.csv")), 1e-5) << problem;
    EXPECT_EQ(result.at("warnings").size(), 0U) << problem;
  }
}

TEST_F(SecondLook, ClassesAreLearnedByBothSolvers) {
  const std::string rows = write("rows.csv", mails(3000, 1, "ham", "spam"));
  const std::string fresh = write("fresh.csv", mails(3000, 2, "ham", "spam"));
  const auto logloss = [&](const std::string& options) -> double {
    EXPECT_EQ(run_dyad("train --quiet " + rows + " --target kind -m " + path("m.dyad") + options).exit_code, 0);
    return run_json("evaluate -m " + path("m.dyad") + " " + fresh).at("metrics").at("logloss");
  };
  const double one_pass = logloss(" --passes 1");
  EXPECT_LT(logloss(" --solver newton"), 1.005 * one_pass);
  EXPECT_LT(logloss(" --solver variational"), 1.005 * one_pass);
}

/// The same rows through files on disk: less memory than they take, and the same model.
TEST_F(SecondLook, RowsThatDoNotFitGoThroughAPrivateFile) {
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

TEST_F(SecondLook, WithoutRoomOnDiskOnePassIsLeft) {
  const std::string rows = write("rows.csv", ratings(9000, 1));
  setenv("TMPDIR", "/nowhere/at/all", 1);
  const json result = trained(rows, "--target rating --categorical user,movie --memory 500K");
  unsetenv("TMPDIR");
  EXPECT_EQ(result.at("passes"), 1);
  ASSERT_EQ(result.at("warnings").size(), 1U);
  EXPECT_NE(result.at("warnings")[0].get<std::string>().find("/nowhere/at/all"), std::string::npos);
}

TEST_F(SecondLook, TheValidationFileSaysHowFarToGo) {
  const std::string rows = write("rows.csv", houses(3000, 1));
  const std::string fresh = write("fresh.csv", houses(1000, 2));
  const json result = trained(rows, "--target price --rank 2 --validation " + fresh);
  EXPECT_EQ(result.at("held_out").at("rows"), 1000);
  EXPECT_NEAR(result.at("held_out").at("refined"), result.at("validation").at("rmse").get<double>(), 1e-9);
}

TEST_F(SecondLook, PassesAreWhatWasAskedFor) {
  const std::string rows = write("rows.csv", houses(500, 1));
  for (const int passes : {1, 2, 5}) {
    const json result = trained(rows, "--target price --rank 2 --passes " + std::to_string(passes));
    EXPECT_EQ(result.at("passes"), passes);
    EXPECT_FALSE(result.contains("held_out"));
  }
}

TEST_F(SecondLook, StepsAreShownWithWhatTheyBring) {
  const std::string rows = write("rows.csv", ratings(3000, 1));
  const std::string shown =
      run_dyad("train " + rows + " --target rating --categorical user,movie -m " + path("m.dyad")).err;
  for (const char* words : {"held-out rows", "objective", "one pass", "sweep 1", "with all rows", "after one pass"})
    EXPECT_NE(shown.find(words), std::string::npos) << words;
}

TEST_F(SecondLook, GoesOnFromTheRefinedModel) {
  const std::string rows = write("rows.csv", ratings(4000, 1));
  const std::string more = write("more.csv", ratings(4000, 2));
  const std::string fresh = write("fresh.csv", ratings(3000, 3));
  (void)trained(rows, "--target rating --categorical user,movie --rank 2");
  const double before = rmse_on(fresh);
  const json resumed = run_json("train " + more + " --resume -m " + path("m.dyad"));
  EXPECT_EQ(resumed.at("all_rows"), 8000);
  EXPECT_EQ(resumed.at("passes"), 1);
  EXPECT_LT(rmse_on(fresh), before);
}

TEST_F(SecondLook, RefusesWhatCannotBe) {
  const std::string rows = write("rows.csv", houses(100, 1));
  for (const char* options :
       {"--passes 0", "--passes 3 --solver kalman", "--passes 1 --solver newton", "--solver newton --memory 0",
        "--passes 3 --forget 100", "--solver variational --diagonal tied", "--solver variational --kind sensing"}) {
    const Result result =
        run_dyad("train " + rows + " --target price -m " + path("m.dyad") + " " + std::string(options));
    EXPECT_EQ(result.exit_code, 2) << options;
    EXPECT_FALSE(result.err.empty());
  }
}

TEST_F(SecondLook, SmallAndOddFilesGiveAModelOrAMessage) {
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
    for (const char* solver : {"auto", "newton", "variational"}) {
      const Result result = run_dyad("train " + rows + " --target y --quiet --json -m " + path("m.dyad") +
                                     " --solver " + std::string(solver));
      ASSERT_EQ(result.exit_code, 0) << name << " " << solver << " " << result.err;
      for (const double value : numbers_of(run_dyad("predict --quiet -m " + path("m.dyad") + " " + rows).out)) {
        EXPECT_GT(value, -20) << name;
        EXPECT_LT(value, 50) << name;
      }
    }
  }
  (void)trained(path("one_feature.csv"), "--target y");
  EXPECT_LT(rmse_on(path("one_feature.csv")), 1e-4);
  (void)trained(path("same.csv"), "--target y");
  EXPECT_LT(rmse_on(path("same.csv")), 1e-3);
}

}  // namespace
}  // namespace dyad::test
