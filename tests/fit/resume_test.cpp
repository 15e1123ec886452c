#include <cmath>

#include <gtest/gtest.h>

#include <dyad/predict.h>
#include <dyad/train.h>

#include "base/random.h"
#include "in_folder.h"

namespace dyad {
namespace {

class Resume : public test::InFolder {
 protected:
  /// Four features of this size; the target does not depend on it.
  [[nodiscard]] std::string rows(const std::string& name, double size, Kind kind, bool classes,
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
        std::snprintf(cell, sizeof(cell), " %d:%.17g", j + 1, size * x[j]);
        text += cell;
      }
      text += "\n";
    }
    return write(name, text);
  }
};

TEST_F(Resume, WorksForEverySolverPrecisionAndSizeOfFeatures) {
  const std::pair<Kind, bool> problems[] = {
      {Kind::gfm, false}, {Kind::gfm, true}, {Kind::sensing, false}, {Kind::phase, false}, {Kind::bilinear, false}};
  for (const auto& [kind, classes] : problems)
    for (const double size : {1.0, 1e20, 1e-20})
      for (const Precision precision : {Precision::double_precision, Precision::single_precision})
        for (const Solver solver : {Solver::automatic, Solver::kalman, Solver::moment, Solver::newton}) {
          TrainOptions options;
          options.data.paths = {rows("first.svm", size, kind, classes, 1)};
          options.columns.index_base = 1;
          if (kind == Kind::bilinear) options.columns.right = {"3-4"};
          options.kind = kind;
          options.precision = precision;
          options.solver = solver;
          if (kind != Kind::phase) options.rank = 2;
          options.threads = 1;
          options.model_path = path("m.dyad");
          SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << classes << " " << size << " "
                                          << static_cast<int>(precision) << " " << static_cast<int>(solver));
          ASSERT_NO_THROW((void)train(options));
          TrainOptions more;
          more.data.paths = {rows("second.svm", size, kind, classes, 2)};
          more.model_path = options.model_path;
          more.resume = true;
          more.threads = 1;
          TrainSummary summary;
          ASSERT_NO_THROW(summary = train(more));
          EXPECT_EQ(summary.all_rows, 400);
        }
}

TEST_F(Resume, FeaturesThatAPrecisionCannotHoldAreReported) {
  TrainOptions options;
  options.data.paths = {rows("rows.svm", 1e20, Kind::gfm, false, 1)};
  options.model_path = path("m.dyad");
  options.rank = 2;
  EXPECT_TRUE(train(options).warnings.empty());
  options.precision = Precision::single_precision;
  EXPECT_FALSE(train(options).warnings.empty());
}

}  // namespace
}  // namespace dyad
