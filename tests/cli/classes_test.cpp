#include <sstream>

#include "cli/generated_data.h"

namespace dyad::test {
namespace {

/// Table with two numbers, a word and three classes.
std::string winds(int count, unsigned seed, const std::vector<std::string>& labels) {
  std::mt19937 random(seed);
  std::normal_distribution<> normal;
  std::ostringstream text;
  text << "x,z,kind,wind\n";
  for (int i = 0; i < count; ++i) {
    const double x = normal(random);
    const double z = normal(random);
    const double score = x * z + (i % 2) + 0.2 * normal(random);
    text << x << ',' << z << ',' << (i % 2 == 0 ? "sea" : "land") << ','
         << labels[score < 0   ? 0
                   : score < 1 ? 1
                               : 2]
         << '\n';
  }
  return text.str();
}

class ClassCommands : public CommandTest {};

TEST_F(ClassCommands, TrainPredictEvaluateInspect) {
  const std::string rows = write("rows.csv", winds(600, 1, {"east", "north", "west"}));
  const std::string others = write("others.csv", winds(200, 2, {"east", "north", "west"}));
  const auto trained = run_json("train " + rows + " --target wind --rank 2 -m " + path("m"));
  EXPECT_EQ(trained["classes"], (std::vector<std::string>{"east", "north", "west"}));
  EXPECT_EQ(trained["metrics"]["classes"].size(), 3);
  const auto evaluated = run_json("evaluate -m " + path("m") + " " + others)["metrics"];
  for (const char* field : {"logloss", "accuracy", "auc", "classes"}) EXPECT_TRUE(evaluated.contains(field)) << field;
  EXPECT_GT(evaluated["accuracy"], 0.7);

  const auto lines = [](const std::string& text) {
    std::vector<std::vector<std::string>> rows_of_cells;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      std::istringstream cells(line);
      rows_of_cells.emplace_back();
      for (std::string cell; std::getline(cells, cell, ',');) rows_of_cells.back().push_back(cell);
    }
    return rows_of_cells;
  };
  const auto probabilities = lines(run_dyad("predict --quiet -m " + path("m") + " " + others).out);
  const auto with_std = lines(run_dyad("predict --quiet --std -m " + path("m") + " " + others).out);
  const auto labels = lines(run_dyad("predict --quiet --labels -m " + path("m") + " " + others).out);
  ASSERT_EQ(probabilities.size(), 200);
  ASSERT_EQ(with_std.size(), 200);
  ASSERT_EQ(labels.size(), 200);
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_EQ(probabilities[i].size(), 3);
    ASSERT_EQ(with_std[i].size(), 6);
    ASSERT_EQ(labels[i].size(), 1);
    double sum = 0;
    double largest = 0;
    std::string best;
    for (std::size_t c = 0; c < 3; ++c) {
      const double p = std::stod(probabilities[i][c]);
      sum += p;
      EXPECT_EQ(with_std[i][c], probabilities[i][c]);
      EXPECT_GE(std::stod(with_std[i][3 + c]), 0);
      if (p > largest) best = std::vector<std::string>{"east", "north", "west"}[c];
      largest = std::max(largest, p);
    }
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(labels[i][0], best);
  }
  const auto inspected = run_json("inspect " + path("m"));
  EXPECT_EQ(inspected["classes"].size(), 3);
  EXPECT_EQ(inspected["classes"][2]["label"], "west");
  EXPECT_EQ(run_dyad("inspect --verify " + path("m")).exit_code, 0);
  EXPECT_EQ(run_dyad("inspect --export " + path("terms.csv") + " " + path("m")).exit_code, 0);
  EXPECT_TRUE(content(path("terms.csv")).starts_with("class,"));
}

TEST_F(ClassCommands, ResumeAndValidation) {
  const std::string rows = write("rows.csv", winds(300, 1, {"1", "2", "3"}));
  const std::string others = write("others.csv", winds(300, 2, {"1", "2", "3"}));
  const std::string model = " -m " + path("m");
  const auto trained = run_json("train " + rows + " --target wind --task classification --solver kalman --rank 2 " +
                                "--validation " + others + model);
  EXPECT_EQ(trained["validation"]["classes"].size(), 3);
  const auto resumed = run_json("train " + others + " --resume" + model);
  EXPECT_EQ(resumed["all_rows"], 600);
  const std::string unknown = write("unknown.csv", winds(30, 2, {"1", "2", "4"}));
  EXPECT_EQ(run_dyad("train " + unknown + " --resume" + model).exit_code, 3);
}

TEST_F(ClassCommands, StandardInputIsRefused) {
  const std::string rows = write("rows.csv", winds(300, 1, {"a", "b", "c"}));
  const Result result = run_dyad("train - --format csv --target wind -m " + path("m") + " < " + rows);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "standard input")) << result.err;
  // A stream can be predicted.
  ASSERT_EQ(run_dyad("train --quiet " + rows + " --target wind --solver kalman -m " + path("m")).exit_code, 0);
  const Result predicted = run_dyad("predict --quiet - --format csv -m " + path("m") + " < " + rows);
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 300);
}

TEST_F(ClassCommands, TooManyClassesAreReported) {
  std::ostringstream rows;
  rows << "x,y\n";
  for (int i = 0; i < 2000; ++i) rows << i % 7 << ',' << 0.5 * i << '\n';
  const Result result =
      run_dyad("train " + write("rows.csv", rows.str()) + " --target y --task classification -m " + path("m"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(names_location(result.err, "rows.csv", 1002, 2)) << result.err;
}

}  // namespace
}  // namespace dyad::test
