#include <dyad/train.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include <dyad/evaluate.h>

#include "base/random.h"

namespace dyad {
namespace {

class Train : public testing::Test {
 protected:
  Train() { std::filesystem::create_directories(folder_); }
  ~Train() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// y = a + a b + noise of standard deviation 0.1.
  [[nodiscard]] TrainOptions options_for_rows(int count, std::uint64_t seed) const {
    std::ofstream file(path("rows.csv"));
    file << "a,b,y\n";
    Random random(seed, 0);
    for (int i = 0; i < count; ++i) {
      const double a = random.normal();
      const double b = random.normal();
      file << a << "," << b << "," << a + a * b + 0.1 * random.normal() << "\n";
    }
    TrainOptions options;
    options.data.paths = {path("rows.csv")};
    options.columns.target = "y";
    options.model_path = path("m.dyad");
    return options;
  }

  [[nodiscard]] double rmse() const {
    PredictOptions options;
    options.data.paths = {path("rows.csv")};
    options.model_path = path("m.dyad");
    return evaluate(options).metrics.value().rmse;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("dyad-train-" + std::to_string(getpid()));
};

TEST_F(Train, InterruptedMultiPassKeepsTheFirstPass) {
  for (const int after : {1, 3, 12}) {
    TrainOptions options = options_for_rows(500, 1);
    options.rank = 4;
    options.passes = 1;
    (void)train(options);
    const double one_pass = rmse();
    options.passes.reset();
    int steps = 0;
    TrainHooks hooks;
    hooks.multi_pass = [&](const MultiPassProgress&) { ++steps; };
    hooks.interrupted = [&] { return steps >= after; };
    const TrainSummary summary = train(options, hooks);
    EXPECT_EQ(summary.outcome, Outcome::interrupted);
    EXPECT_TRUE(summary.has_read_all_rows);
    EXPECT_EQ(summary.passes, 1);
    EXPECT_FALSE(summary.held_out);
    EXPECT_EQ(rmse(), one_pass);
  }
}

TEST_F(Train, InterruptedAnovaKeepsTheLastCompleteRound) {
  TrainOptions options = options_for_rows(500, 1);
  options.solver = Solver::anova;
  int rounds = 0;
  TrainHooks hooks;
  hooks.multi_pass = [&](const MultiPassProgress&) { ++rounds; };
  hooks.interrupted = [&] { return rounds >= 1; };
  const TrainSummary summary = train(options, hooks);
  EXPECT_EQ(summary.outcome, Outcome::interrupted);
  EXPECT_EQ(rounds, 1);
  EXPECT_TRUE(std::isfinite(rmse()));
}

TEST_F(Train, TablesAreFittedByAnova) {
  const TrainSummary summary = train(options_for_rows(500, 1));
  EXPECT_EQ(summary.solver, Solver::anova);
  EXPECT_GT(summary.noise, 0);
}

TEST_F(Train, MultiPassStepsAreReportedInOrder) {
  TrainOptions options = options_for_rows(500, 2);
  options.rank = 4;
  double last = 0;
  int held_out = 0;
  int refits = 0;
  TrainHooks hooks;
  hooks.multi_pass = [&](const MultiPassProgress& step) {
    EXPECT_FALSE(step.level.empty());
    EXPECT_GE(step.seconds, last);
    last = step.seconds;
    held_out += std::isnan(step.held_out) ? 0 : 1;
    refits += step.is_refit ? 1 : 0;
  };
  const TrainSummary summary = train(options, hooks);
  EXPECT_GT(held_out, summary.passes - 1);  // once for one pass and once per level
  EXPECT_GE(refits, summary.passes - 1);
  ASSERT_TRUE(summary.held_out);
  EXPECT_LE(summary.held_out->multi_pass, summary.held_out->one_pass);
  EXPECT_NEAR(rmse(), 0.1, 0.02);
}

TEST_F(Train, StatusIsReportedAtMostTenTimesASecond) {
  std::vector<Index> rows;
  TrainHooks hooks;
  hooks.status = [&](const TrainProgress& point) { rows.push_back(point.rows); };
  const TrainSummary summary = train(options_for_rows(20000, 1), hooks);
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_LE(rows.back(), summary.rows);
  EXPECT_LE(static_cast<double>(rows.size()), 1 + 10 * summary.seconds);
}

}  // namespace
}  // namespace dyad
