#include <cmath>
#include <filesystem>
#include <functional>

#include <sys/stat.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/generated_data.h"

namespace dyad::test {
namespace {

using nlohmann::json;

/// Data that is valid but unusual.
class UnusualData : public CommandTest {
 protected:
  [[nodiscard]] json metrics_of(const std::string& train, const std::string& data) const {
    const json trained = run_json("train " + train + " -m " + path("m.dyad"));
    return run_json("evaluate -m " + path("m.dyad") + " " + data).at("metrics");
  }

  /// Concatenation of row(i, a, b) for `count` rows i, with independent standard normal a and b.
  static std::string products(int count, unsigned seed, const std::function<std::string(int, double, double)>& row) {
    std::mt19937 random(seed);
    std::normal_distribution<> normal;
    std::string text;
    for (int i = 0; i < count; ++i) {
      const double a = normal(random);
      const double b = normal(random);
      text += row(i, a, b);
    }
    return text;
  }
  static std::string csv_row(int, double a, double b) {
    return std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(2 * a * b + a) + "\n";
  }
  static std::string svm_row(int, double a, double b) {
    return std::to_string(2 * a * b + a) + " 1:" + std::to_string(a) + " 2:" + std::to_string(b) + "\n";
  }
};

TEST_F(UnusualData, ClassesWithoutSignalGetTheBaseRate) {
  std::mt19937 random(1);
  std::uniform_real_distribution<> uniform;
  std::string text = "a,y\n";
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(uniform(random));
    text += uniform(random) < 0.9 ? ",1\n" : ",0\n";
  }
  const std::string rows = write("rows.csv", text);
  const json metrics = metrics_of(rows + " --target y --batch 100000", rows);
  EXPECT_NEAR(metrics.at("logloss").get<double>(), metrics.at("best_constant").get<double>(), 0.01);
}

TEST_F(UnusualData, ShortFirstFileOrEarlyCheckpointDoesNotDetermineTheScales) {
  const std::string rows = products(6000, 1, csv_row);
  const std::string header = "a,b,y\n";
  const std::size_t first_end = rows.find('\n') + 1;
  const std::string first = write("first.csv", header + rows.substr(0, first_end));
  const std::string others = write("others.csv", header + rows.substr(first_end));
  const std::string all = write("all.csv", header + rows);
  for (const std::string& train :
       {first + " " + others, all + " --checkpoint-every 1500", all + " --checkpoint-every 3"})
    EXPECT_GT(metrics_of(train + " --target y", all).at("r2"), 0.99) << train;
}

TEST_F(UnusualData, ColumnThatIsConstantAtFirstIsNotClipped) {
  const std::string text =
      "a,b,y\n" + products(9000, 1, [](int i, double a, double b) {
        const double late = i < 4500 ? 0 : 500 + 100 * b;
        return std::to_string(a) + "," + std::to_string(late) + "," + std::to_string(a + late) + "\n";
      });
  const std::string rows = write("rows.csv", text);
  EXPECT_GT(metrics_of(rows + " --target y", rows).at("r2"), 0.95);
}

TEST_F(UnusualData, LateFeaturesOfOneSideAreLearned) {
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  std::string text;
  for (int i = 0; i < 12000; ++i) {
    const double a = i < 1000 ? 0 : normal(random);
    const double b = normal(random);
    const double c = normal(random);
    text += std::to_string(a * b - a * c + c) + (i < 1000 ? "" : " 1:" + std::to_string(a)) +
            " 4:" + std::to_string(b) + " 5:" + std::to_string(c) + "\n";
  }
  const std::string rows = write("rows.svm", text);
  EXPECT_GT(metrics_of(rows + " --kind bilinear --right 4- --rank 1", rows).at("r2"), 0.95);
  // A warning names --right if one side never occurs.
  const json none = run_json("train " + rows + " --kind bilinear --right 1- -m " + path("m.dyad") + " --index-base 1");
  EXPECT_NE(none.at("warnings").dump().find("--right"), std::string::npos);
}

TEST_F(UnusualData, SingleOutlierHasBoundedInfluence) {
  const auto outlier_at = [](int outlier, const std::function<std::string(int, double, double)>& inlier,
                             const std::string& row) {
    return [=](int i, double a, double b) { return i == outlier ? row : inlier(i, a, b); };
  };
  const std::string good = write("good.svm", products(2000, 2, svm_row));
  for (const int position : {50, 5000}) {
    const std::string rows = write("outlier.svm", products(8000, 1, outlier_at(position, svm_row, "1 1:1e60 2:3\n")));
    EXPECT_GT(metrics_of(rows, good).at("r2"), 0.99) << position;
    EXPECT_EQ(run_json("train " + rows + " -m " + path("m.dyad")).at("warnings").size(), 1U);
  }
  const std::string table = write("good.csv", "a,b,y\n" + products(2000, 2, csv_row));
  for (const char* row : {"1,1,1e9\n", "1e60,1,3\n"}) {
    const std::string rows = write("outlier.csv", "a,b,y\n" + products(8000, 1, outlier_at(5000, csv_row, row)));
    EXPECT_GT(metrics_of(rows + " --target y", table).at("r2"), 0.98) << row;
  }
}

TEST_F(UnusualData, ScaleOfWeightsHasNoEffect) {
  std::vector<double> errors;
  for (const char* weight : {"1", "0.0001", "10000"}) {
    const std::string rows = write("rows.csv", "a,b,y,w\n" + products(6000, 1, [&](int i, double a, double b) {
                                                 std::string row = csv_row(i, a, b);
                                                 row.pop_back();
                                                 return row + "," + weight + "\n";
                                               }));
    errors.push_back(metrics_of(rows + " --target y --weight w", rows).at("rmse"));
  }
  EXPECT_NEAR(errors[1], errors[0], 1e-5 + 0.01 * errors[0]);
  EXPECT_NEAR(errors[2], errors[0], 1e-5 + 0.01 * errors[0]);
}

TEST_F(UnusualData, RowsOfWeightZeroHaveNoEffect) {
  const std::string rows = write("rows.csv", "a,b,y,w\n" + products(4000, 1, [](int i, double a, double b) {
                                               return i < 1500 ? "1,1,77,0\n"
                                                               : std::to_string(a) + "," + std::to_string(b) + "," +
                                                                     std::to_string(a * b) + ",1\n";
                                             }));
  EXPECT_GT(metrics_of(rows + " --target y --weight w", rows).at("r2"), 0.95);
  const std::string none = write("none.csv", "a,b,y,w\n1,2,3,0\n2,3,4,0\n");
  EXPECT_EQ(run_dyad("evaluate -m " + path("m.dyad") + " " + none).exit_code, 3);
}

TEST_F(UnusualData, PaddedCellsAndInnerQuotesAreAccepted) {
  const std::string padded = write("padded.csv", "a , b,y\n" + products(3000, 1, [](int, double a, double b) {
                                                   return " " + std::to_string(a) + ",  " + std::to_string(b) + " , " +
                                                          std::to_string(a * b) + "\n";
                                                 }));
  const json trained = run_json("train " + padded + " --target y -m " + path("m.dyad"));
  EXPECT_EQ(trained.at("features"), 2);
  const std::string quotes = write("quotes.csv", "n,b,y\n5\" pipe,1,2\n\"a\nb\",2,3\nx,3,4\n");
  EXPECT_EQ(run_dyad("train --quiet " + quotes + " --target y -m " + path("q.dyad")).exit_code, 0);
  EXPECT_EQ(run_json("inspect " + path("q.dyad")).at("training").at("rows"), "3");
}

TEST_F(UnusualData, CategoriesThatAreNotUtf8StayDistinct) {
  const std::string rows = write("rows.csv", "caf\xe9,y\n\xe9,oui\xe9\n\xe8,oui\xe8\n\xe9,oui\xe9\n\xe8,oui\xe8\n");
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target y -m " + path("m.dyad")).exit_code, 0);
  EXPECT_EQ(run_dyad("evaluate --quiet -m " + path("m.dyad") + " " + rows).exit_code, 0);
  EXPECT_EQ(run_dyad("inspect --json " + path("m.dyad")).exit_code, 0);
}

TEST_F(UnusualData, OverflowingPredictionIsReportedWithTheLine) {
  const std::string rows = write("rows.svm", products(3000, 1, svm_row));
  ASSERT_EQ(run_dyad("train --quiet " + rows + " -m " + path("m.dyad")).exit_code, 0);
  const Result result =
      run_dyad("predict --quiet -m " + path("m.dyad") + " " + write("huge.svm", "1 1:1\n1 1:1e300 2:1e300\n"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(names_location(result.err, "huge.svm", 2)) << result.err;
}

TEST_F(UnusualData, TinyFilesAreAccepted) {
  for (const auto& [name, text, options] : {std::tuple{"one.csv", "a,y\n1,2\n", "--target y"},
                                            {"names.csv", "a,y\nx,2\ny,3\n", "--target y --rank 3"},
                                            {"bare.svm", "1\n2\n3\n", ""},
                                            {"wide.csv", "a,b,c,y\n1,2,3,1\n,,,0\n", "--target y"},
                                            {"zero.svm", "1 1:0\n2 1:0\n", ""},
                                            {"crlf.csv", "a,y\r\n1,2\r\n2,3\r\n\r\n", "--target y"}}) {
    const std::string rows = write(name, text);
    const Result trained = run_dyad("train --quiet " + rows + " -m " + path("m.dyad") + " " + options);
    EXPECT_EQ(trained.exit_code, 0) << name << trained.err;
    EXPECT_EQ(run_dyad("evaluate --quiet -m " + path("m.dyad") + " " + rows).exit_code, 0) << name;
    EXPECT_EQ(run_dyad("inspect " + path("m.dyad")).exit_code, 0) << name;
  }
}

TEST_F(UnusualData, InputsAreNotOverwrittenThroughOtherPaths) {
  const std::string rows = write("rows.csv", "a,b,y\n" + products(100, 1, csv_row));
  const std::string before = content(rows);
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target y -m " + path("m.dyad")).exit_code, 0);
  const std::string model = content(path("m.dyad"));
  for (const std::string& command : {"train --quiet " + rows + " --target y -m " + path("./rows.csv"),
                                     "predict --quiet -m " + path("m.dyad") + " " + rows + " -o " + path("./rows.csv"),
                                     "predict --quiet -m " + path("m.dyad") + " " + rows + " -o " + path("./m.dyad"),
                                     "inspect " + path("m.dyad") + " --export " + path("./m.dyad")})
    EXPECT_EQ(run_dyad(command).exit_code, 2) << command;
  EXPECT_EQ(content(rows), before);
  EXPECT_EQ(content(path("m.dyad")), model);
}

TEST_F(UnusualData, ValidationFileIsCheckedBeforeTraining) {
  const std::string rows = write("rows.csv", "a,b,y\n" + products(100, 1, csv_row));
  for (const std::string& validation : {path("none.csv"), path("rows.xyz"), path("rows.npy")}) {
    EXPECT_NE(run_dyad("train --quiet " + rows + " --target y -m " + path("m.dyad") + " --validation " + validation)
                  .exit_code,
              0);
    EXPECT_FALSE(std::filesystem::exists(path("m.dyad")));
  }
}

TEST_F(UnusualData, WaitForAWriterCanBeInterrupted) {
  ASSERT_EQ(mkfifo(path("pipe.csv").c_str(), 0600), 0);
  const Result result = run_dyad("train --quiet " + path("pipe.csv") + " --target y -m " + path("m.dyad") +
                                 " & dyad=$!; sleep 0.3; kill -INT $dyad; wait $dyad");
  EXPECT_EQ(result.exit_code, 130) << result.err;
}

}  // namespace
}  // namespace dyad::test
