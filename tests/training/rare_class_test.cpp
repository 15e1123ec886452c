#include <cmath>

#include <gtest/gtest.h>

#include <dyad/evaluate.h>
#include <dyad/train.h>

#include "base/random.h"
#include "likelihood/logistic.h"
#include "temporary_folder.h"
#include "training/one_pass/class_evidence.h"

namespace dyad {
namespace {

enum class Columns { numbers, categories, both };

class RareClass : public test::TemporaryFolderTest {
 protected:
  /// Writes `count` rows, of which `positive` are of the positive class. They are drawn uniformly or, if `related`,
  /// with three times the probability for rows with a > 0.
  [[nodiscard]] std::string rows(const std::string& name, Columns columns, int count, int positive, bool related,
                                 std::uint64_t seed) const {
    Random random(seed, 0);
    std::string text = columns == Columns::numbers      ? "a,b,c,y\n"
                       : columns == Columns::categories ? "u,v,y\n"
                                                        : "a,b,c,u,v,y\n";
    int remaining = positive;
    for (int i = 0; i < count; ++i) {
      const double a = random.normal();
      if (columns != Columns::categories)
        text += std::to_string(a) + "," + std::to_string(random.normal()) + "," + std::to_string(random.normal()) + ",";
      if (columns != Columns::numbers)
        text += "u" + std::to_string(static_cast<int>(20 * random.uniform())) + ",v" +
                std::to_string(static_cast<int>(5 * random.uniform())) + ",";
      const double share = static_cast<double>(remaining) / (count - i) * (related ? (a > 0 ? 1.5 : 0.5) : 1);
      const bool is_positive = remaining > 0 && (random.uniform() < share || remaining >= count - i);
      remaining -= is_positive ? 1 : 0;
      text += is_positive ? "1\n" : "0\n";
    }
    return write(name, text);
  }

  [[nodiscard]] double log_loss_on(const std::string& file) const {
    PredictOptions options;
    options.data.paths = {file};
    options.model_path = path("m.dyad");
    options.threads = 1;
    return evaluate(options).metrics.value().logloss;
  }
};

TEST_F(RareClass, LossIsAtMostThatOfTheConstant) {
  constexpr double share = 0.001;
  const double constant = binary_entropy(share);  // log-loss of the best constant; new rows have the same share
  for (const Columns columns : {Columns::numbers, Columns::categories, Columns::both})
    for (const bool related : {false, true})
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const std::string fresh = rows("fresh.csv", columns, 10000, 10, related, 100 + seed);
        TrainOptions options;
        options.data.paths = {rows("rows.csv", columns, 1000, 1, related, seed)};
        options.columns.target = "y";
        options.model_path = path("m.dyad");
        options.threads = 1;
        for (const Solver solver : {Solver::automatic, Solver::moment}) {
          options.solver = solver;
          options.batch.reset();
          if (solver == Solver::moment) options.batch = 100;  // small enough for several steps
          const TrainSummary summary = train(options);
          EXPECT_LE(log_loss_on(path("rows.csv")), constant * (1 + 1e-9)) << seed;
          EXPECT_LE(log_loss_on(fresh), constant * (1 + 1e-9)) << seed;
          EXPECT_FALSE(summary.warnings.empty());
        }
      }
}

TEST_F(RareClass, MomentSolverUsesInformativeFeatures) {
  const auto write_rows = [&](const std::string& name, int count, std::uint64_t seed) {
    Random random(seed, 0);
    std::string text = "a,b,y\n";
    for (int i = 0; i < count; ++i) {
      const double a = random.normal();
      text += std::to_string(a) + "," + std::to_string(random.normal()) +
              (random.uniform() < logistic(2 * a - 2) ? ",1\n" : ",0\n");
    }
    return write(name, text);
  };
  TrainOptions options;
  options.data.paths = {write_rows("rows.csv", 600, 1)};
  options.columns.target = "y";
  options.model_path = path("m.dyad");
  options.solver = Solver::moment;
  options.batch = 100;
  options.threads = 1;
  EXPECT_FALSE(train(options).is_constant);
  PredictOptions check;
  check.data.paths = {write_rows("fresh.csv", 10000, 2)};
  check.model_path = options.model_path;
  const Metrics metrics = evaluate(check).metrics.value();
  EXPECT_LT(metrics.logloss, 0.85 * metrics.constant_loss);
}

TEST_F(RareClass, InformativeCategoryIsUsed) {
  // Category u20 occurs in half of the positive rows and in no others.
  const auto write_rows = [&](const std::string& name, int count, std::uint64_t seed) {
    Random random(seed, 0);
    std::string text = "u,a,y\n";
    for (int i = 0; i < count; ++i) {
      const bool is_positive = random.uniform() < 0.01;
      const bool is_revealed = is_positive && random.uniform() < 0.5;
      text += "u" + std::to_string(is_revealed ? 20 : static_cast<int>(20 * random.uniform())) + "," +
              std::to_string(random.normal()) + (is_positive ? ",1\n" : ",0\n");
    }
    return write(name, text);
  };
  for (const bool one_pass : {false, true}) {
    TrainOptions options;
    options.data.paths = {write_rows("rows.csv", 4000, 1)};
    options.columns.target = "y";
    options.model_path = path("m.dyad");
    options.threads = 1;
    if (one_pass) options.passes = 1;
    EXPECT_FALSE(train(options).is_constant);
    PredictOptions check;
    check.data.paths = {write_rows("fresh.csv", 10000, 2)};
    check.model_path = options.model_path;
    const Metrics metrics = evaluate(check).metrics.value();
    EXPECT_LT(metrics.logloss, 0.8 * metrics.constant_loss);
  }
}

TEST(ClassEvidence, EqualsGainOverTheBestConstant) {
  ClassEvidence evidence;
  for (int i = 0; i < 10; ++i) evidence.add(i == 0, std::log(2.0), 1);
  EXPECT_NEAR(evidence.nats(), std::max(0.0, 10 * binary_entropy(0.1) - 10 * std::log(2.0)), 1e-12);
  EXPECT_NEAR(evidence.log_odds(), std::log(0.1 / 0.9), 1e-12);
  ClassEvidence confident;
  for (int i = 0; i < 10; ++i) confident.add(i % 2 == 0, 0.1, 2);
  EXPECT_NEAR(confident.nats(), 20 * (std::log(2.0) - 0.1), 1e-12);
}

}  // namespace
}  // namespace dyad
