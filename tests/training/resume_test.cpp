#include <cmath>

#include <gtest/gtest.h>

#include <dyad/evaluate.h>
#include <dyad/train.h>

#include "base/random.h"
#include "likelihood/logistic.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

class Resume : public test::TemporaryFolderTest {
 protected:
  /// 200 rows with four features of standard deviation `scale`. The target does not depend on the scale.
  [[nodiscard]] std::string rows(const std::string& name, double scale, Kind kind, bool classes,
                                 std::uint64_t seed) const {
    Random random(seed, 0);
    std::string text;
    for (int i = 0; i < 200; ++i) {
      double x[4];
      for (double& number : x) number = random.normal();
      double y = x[0] * x[2] + x[1] * x[3];
      if (kind == Kind::phase) y = std::pow(x[0] + 2 * x[1] - x[2], 2);
      if (kind == Kind::gfm) y += x[0] + 0.1 * random.normal();
      if (classes) y = y > 0 ? 1 : 0;
      text += std::to_string(y);
      for (int j = 0; j < 4; ++j) {
        char cell[40];
        std::snprintf(cell, sizeof(cell), " %d:%.17g", j + 1, scale * x[j]);
        text += cell;
      }
      text += "\n";
    }
    return write(name, text);
  }
};

TEST_F(Resume, SupportsAllSolversPrecisionsAndFeatureScales) {
  const std::pair<Kind, bool> problems[] = {
      {Kind::gfm, false}, {Kind::gfm, true}, {Kind::sensing, false}, {Kind::phase, false}, {Kind::bilinear, false}};
  for (const auto& [kind, classes] : problems)
    for (const double scale : {1.0, 1e20, 1e-20})
      for (const Precision precision : {Precision::double_precision, Precision::single_precision})
        for (const Solver solver : {Solver::automatic, Solver::kalman, Solver::moment, Solver::newton}) {
          TrainOptions options;
          options.data.paths = {rows("first.svm", scale, kind, classes, 1)};
          options.columns.index_base = 1;
          if (kind == Kind::bilinear) options.columns.right = {"3-4"};
          options.kind = kind;
          options.precision = precision;
          options.solver = solver;
          if (kind != Kind::phase) options.rank = 2;
          options.threads = 1;
          options.model_path = path("m.dyad");
          SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << classes << " " << scale << " "
                                          << static_cast<int>(precision) << " " << static_cast<int>(solver));
          ASSERT_NO_THROW((void)train(options));
          TrainOptions more;
          more.data.paths = {rows("second.svm", scale, kind, classes, 2)};
          more.model_path = options.model_path;
          more.resume = true;
          more.threads = 1;
          TrainSummary summary;
          ASSERT_NO_THROW(summary = train(more));
          EXPECT_EQ(summary.all_rows, 400);
        }
}

TEST_F(Resume, FeaturesOutsideOfTheRangeOfThePrecisionAreReported) {
  TrainOptions options;
  options.data.paths = {rows("rows.svm", 1e20, Kind::gfm, false, 1)};
  options.model_path = path("m.dyad");
  options.rank = 2;
  EXPECT_TRUE(train(options).warnings.empty());
  options.precision = Precision::single_precision;
  EXPECT_FALSE(train(options).warnings.empty());
}

/// Rows with weights of 0, 1 and up to 1e6. A weight of 1e6 would change log-odds by 1e6 in one Newton step.
class LargeWeights : public test::TemporaryFolderTest {
 protected:
  [[nodiscard]] std::string rows(const std::string& name, bool categories, bool classes, int count,
                                 std::uint64_t seed) const {
    Random random(seed, 0);
    std::string text = categories ? "u,v,a,b,w,y\n" : "a,b,w,y\n";
    for (int i = 0; i < count; ++i) {
      const double a = random.normal();
      const double b = random.normal();
      double f = a + a * b;
      if (categories) {
        const auto u = static_cast<int>(10 * random.uniform());
        const auto v = static_cast<int>(5 * random.uniform());
        text += "u" + std::to_string(u) + ",v" + std::to_string(v) + ",";
        f += u % 2 == 0 ? 1 : -1;
      }
      const double weights[] = {0, 1, 1e6 * random.uniform(), 1e6};
      const double weight = weights[static_cast<int>(4 * random.uniform())];
      text += std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(weight) + ",";
      if (classes)
        text += random.uniform() < logistic(2 * f) ? "yes\n" : "no\n";
      else
        text += std::to_string(f + 0.3 * random.normal()) + "\n";
    }
    return write(name, text);
  }

  /// Loss on fresh rows of weight 1 after training and resuming.
  [[nodiscard]] double loss_of(bool categories, bool classes, Solver solver, Precision precision) const {
    TrainOptions options;
    options.data.paths = {rows("first.csv", categories, classes, 1000, 1)};
    options.columns.target = "y";
    options.columns.weight = "w";
    options.precision = precision;
    options.solver = solver;
    options.threads = 1;
    options.model_path = path("m.dyad");
    (void)train(options);
    TrainOptions more;
    more.data.paths = {rows("second.csv", categories, classes, 1000, 2)};
    more.model_path = options.model_path;
    more.resume = true;
    more.threads = 1;
    EXPECT_EQ(train(more).all_rows, 2000);
    PredictOptions fresh;
    fresh.data.paths = {rows("fresh.csv", categories, classes, 2000, 3)};
    fresh.model_path = options.model_path;
    fresh.threads = 1;
    const Metrics metrics = evaluate(fresh).metrics.value();
    return classes ? metrics.logloss : metrics.rmse;
  }
};

TEST_F(LargeWeights, SinglePrecisionAgreesWithDoublePrecision) {
  for (const bool categories : {false, true})
    for (const bool classes : {false, true})
      for (const Solver solver : {Solver::automatic, Solver::kalman, Solver::moment}) {
        SCOPED_TRACE(testing::Message() << categories << " " << classes << " " << static_cast<int>(solver));
        double in_double = 0;
        double in_single = 0;
        ASSERT_NO_THROW(in_double = loss_of(categories, classes, solver, Precision::double_precision));
        ASSERT_NO_THROW(in_single = loss_of(categories, classes, solver, Precision::single_precision));
        EXPECT_NEAR(in_single, in_double, 0.02 * in_double);
      }
}

}  // namespace
}  // namespace dyad
