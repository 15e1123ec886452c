#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <dyad/error.h>
#include <dyad/evaluate.h>
#include <dyad/train.h>

#include "base/random.h"
#include "temporary_folder.h"
#include "training/order_check.h"

namespace dyad {
namespace {

/// More than the number of rows in the first block.
constexpr int row_count = 5000;

class TargetOrder : public test::TemporaryFolderTest {
 protected:
  /// `count` rows with two normal features; `target(i, a, b)` is the text of the target.
  template <typename Target>
  static std::string csv(int count, std::uint64_t seed, Target&& target, bool with_header = true) {
    Random random(seed, 0);
    std::string text = with_header ? "a,b,y\n" : "";
    for (int i = 0; i < count; ++i) {
      const double a = random.normal();
      const double b = random.normal();
      text += std::to_string(a) + "," + std::to_string(b) + "," + target(i, a, b) + "\n";
    }
    return text;
  }
  static auto constant(const std::string& value) {
    return [value](int, double, double) { return value; };
  }
  /// Rows sorted by the target: `row_count` rows with the value `first`, then as many with `second`.
  static std::string sorted_csv(const std::string& first, const std::string& second) {
    return csv(row_count, 1, constant(first)) + csv(row_count, 2, constant(second), false);
  }

  [[nodiscard]] TrainOptions options_for(std::vector<std::string> paths) const {
    TrainOptions options;
    options.data.paths = std::move(paths);
    options.columns.target = "y";
    options.model_path = path("m.dyad");
    options.passes = 1;
    options.rank = 1;
    return options;
  }

  /// Trains on a pipe, which cannot be read twice.
  [[nodiscard]] TrainSummary train_on_pipe(const std::string& text, TrainOptions options) const {
    const std::string pipe = path("pipe");
    EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(pipe) << text; });
    options.data.paths = {pipe};
    options.data.format = Format::csv;
    TrainSummary summary;
    try {
      summary = train(options);
    } catch (...) {
      writer.join();
      std::filesystem::remove(pipe);
      throw;
    }
    writer.join();
    std::filesystem::remove(pipe);
    return summary;
  }

  [[nodiscard]] Metrics evaluated(const std::string& csv_path) const {
    PredictOptions options;
    options.data.paths = {csv_path};
    options.model_path = path("m.dyad");
    return evaluate(options).metrics.value();
  }
};

TEST_F(TargetOrder, AllRowsOfTextFilesDetermineTheTask) {
  for (const auto& [first, second] : {std::pair{"0", "1"}, {"1", "0"}, {"-1", "+1"}, {"spam", "ham"}}) {
    const std::string rows = write("rows.csv", sorted_csv(first, second));
    EXPECT_EQ(train(options_for({rows})).task, Task::classification) << first;
    EXPECT_EQ(evaluated(rows).task, Task::classification);
  }
  // The positive label does not depend on the row order, even if the first block contains one label only.
  (void)write("rows.csv", sorted_csv("spam", "ham"));
  PredictOptions predict_options;
  predict_options.data.paths = {path("rows.csv")};
  predict_options.model_path = path("m.dyad");
  predict_options.output_path = path("p.txt");
  EXPECT_EQ(predict(predict_options).positive, "spam");
}

TEST_F(TargetOrder, AllFilesDetermineTheTask) {
  const std::string zeros = write("zeros.csv", csv(row_count, 1, constant("0")));
  const std::string ones = write("ones.csv", csv(row_count, 2, constant("1")));
  EXPECT_EQ(train(options_for({zeros, ones})).task, Task::classification);
}

TEST_F(TargetOrder, AllRowsOfLibsvmAndNpyDetermineTheTask) {
  std::string text;
  Random random(1, 0);
  for (int i = 0; i < 2 * row_count; ++i)
    text += std::string(i < row_count ? "-1" : "1") + " 1:" + std::to_string(random.normal()) + "\n";
  TrainOptions options = options_for({write("rows.svm", text)});
  options.columns.target.clear();
  EXPECT_EQ(train(options).task, Task::classification);

  const auto npy = [&](const std::string& name, int columns, auto&& value) {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(2 * row_count) +
                         (columns > 1 ? ", " + std::to_string(columns) : ",") + "), }";
    header.resize(118 - 1, ' ');
    header += '\n';
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(118) + '\0' + header;
    for (int i = 0; i < 2 * row_count * columns; ++i) {
      const double number = value(i);
      bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    return write(name, bytes);
  };
  options.data.paths = {npy("x.npy", 2, [&](int) { return random.normal(); })};
  options.data.target_paths = {npy("y.npy", 1, [&](int i) { return i < row_count ? 0.0 : 1.0; })};
  EXPECT_EQ(train(options).task, Task::classification);
}

TEST_F(TargetOrder, NumbersAfterConstantFirstBlockGiveRegression) {
  // Values of about 3e6, after a first block of zeros.
  const auto number = [](int, double a, double) { return std::to_string(1e6 * (3 + a)); };
  const std::string rows = csv(row_count, 1, constant("0")) + csv(row_count, 2, number, false);
  const std::string rows_path = write("rows.csv", rows);
  const std::string fresh = write("fresh.csv", csv(1000, 3, number));
  const TrainSummary of_file = train(options_for({rows_path}));
  EXPECT_EQ(of_file.task, Task::regression);
  EXPECT_LT(evaluated(fresh).mae, 3e6);  // best constant: 1.6e6, zero: 3e6
  const TrainSummary from_pipe = train_on_pipe(rows, options_for({}));
  EXPECT_EQ(from_pipe.task, Task::regression);
  EXPECT_FALSE(from_pipe.warnings.empty());
  EXPECT_EQ(from_pipe.rows, 2 * row_count);
  // The zeros that follow the first block are learned in random order with the other rows. Best constant: 1.0e6.
  EXPECT_EQ(from_pipe.order, OrderRemedy::shuffled);
  EXPECT_LT(evaluated(fresh).rmse, 7e5);
}

TEST_F(TargetOrder, SecondValueInPipeGivesClassification) {
  const TrainSummary summary = train_on_pipe(sorted_csv("0", "1"), options_for({}));
  EXPECT_EQ(summary.task, Task::classification);
  EXPECT_FALSE(summary.warnings.empty());
  // Separable classes are learned in any row order. Rows of the other class have an empty target and are omitted.
  const auto a_above = [](double least, const std::string& label) {
    return [least, label](int, double a, double) { return (a > 0 ? 1.0 : 0.0) == least ? label : std::string(); };
  };
  std::string text = "a,b,y\n";
  for (const double label : {0.0, 1.0}) {
    std::istringstream lines(csv(4 * row_count, 7, a_above(label, label > 0 ? "1" : "0"), false));
    for (std::string line; std::getline(lines, line);)
      if (!line.ends_with(',')) text += line + "\n";
  }
  EXPECT_EQ(train_on_pipe(text, options_for({})).task, Task::classification);
  const std::string fresh =
      write("fresh.csv", csv(1000, 3, [](int, double a, double) { return std::string(a > 0 ? "1" : "0"); }));
  EXPECT_GT(evaluated(fresh).auc, 0.9);
}

TEST_F(TargetOrder, GivenTaskIsKept) {
  const std::string rows = write("rows.csv", sorted_csv("0", "1"));
  TrainOptions options = options_for({rows});
  options.columns.task = Task::regression;
  EXPECT_EQ(train(options).task, Task::regression);
  options.columns.task = Task::classification;
  EXPECT_EQ(train_on_pipe(sorted_csv("0", "7"), options).task, Task::classification);
  // A range implies regression.
  options.columns.task.reset();
  options.range = std::pair(0.0, 1.0);
  EXPECT_EQ(train_on_pipe(csv(row_count, 1, constant("0")), options).task, Task::regression);
  options = options_for({rows});
  options.kind = Kind::phase;
  options.rank.reset();
  EXPECT_EQ(train(options).task, Task::regression);
}

TEST_F(TargetOrder, InvalidSecondValuesAreReportedWithTheirLine) {
  const std::string zeros = write("zeros.csv", csv(row_count, 1, constant("no")));
  const std::string more = write("more.csv", "a,b,y\n1,1,yes\n1,1,\n");
  try {
    (void)train(options_for({zeros, more}));
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 3);
    EXPECT_NE(std::string(error.what()).find(more), std::string::npos) << error.what();
  }
  // Text after numbers is not a class.
  EXPECT_THROW((void)train_on_pipe(csv(row_count, 1, constant("0")) + "1,1,spam\n", options_for({})), DataError);
}

TEST_F(TargetOrder, ResumedRunDeterminesAProvisionalTask) {
  const std::string zeros = write("zeros.csv", csv(300, 1, constant("0")));
  (void)train(options_for({zeros}));
  TrainOptions options;
  options.model_path = path("m.dyad");
  options.resume = true;
  options.data.paths = {write("ones.csv", csv(300, 2, constant("1")))};
  EXPECT_EQ(train(options).task, Task::classification);
  (void)train(options_for({zeros}));
  options.data.paths = {write("numbers.csv", csv(300, 2, [](int, double a, double) { return std::to_string(a); }))};
  const TrainSummary numbers = train(options);
  EXPECT_EQ(numbers.task, Task::regression);
  EXPECT_EQ(numbers.all_rows, 600);
  EXPECT_LT(evaluated(path("numbers.csv")).rmse, 0.5);
}

TEST_F(TargetOrder, ProgressiveMetricsOfSortedRowsAreNan) {
  const auto noisy = [](int, double a, double b) { return std::to_string(a + b * b); };
  const TrainSummary shuffled = train(options_for({write("rows.csv", csv(row_count, 1, noisy))}));
  EXPECT_LT(shuffled.progressive.rmse, shuffled.progressive.constant_loss);
  EXPECT_TRUE(std::isfinite(shuffled.metrics.r2));
  const TrainSummary classes = train(options_for({write("rows.csv", sorted_csv("0", "1"))}));
  EXPECT_TRUE(std::isnan(classes.progressive.logloss));
  EXPECT_TRUE(std::isnan(classes.metrics.auc));
  EXPECT_FALSE(classes.warnings.empty());
  const auto rising = [](int i, double a, double) { return std::to_string(0.01 * i + a); };
  EXPECT_TRUE(std::isnan(train(options_for({write("rows.csv", csv(row_count, 1, rising))})).progressive.r2));
}

TEST(OrderCheck, RandomOrderIsAccepted) {
  for (const Task task : {Task::regression, Task::classification})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      OrderCheck check(task);
      MetricSums model(task);
      Random random(seed, 0);
      for (int i = 0; i < 1000; ++i) {
        const double y = task == Task::regression ? random.normal() : random.uniform() < 0.1 ? 1 : 0;
        check.add(y, 1);
        model.add(y, 0.9 * (task == Task::regression ? 0 : 0.1) + 0.1 * y, 1);  // a weak model
      }
      EXPECT_FALSE(check.order_predicts_targets(model)) << seed;
    }
}

}  // namespace
}  // namespace dyad
