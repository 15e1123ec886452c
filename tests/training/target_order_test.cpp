#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <dyad/data_error.h>
#include <dyad/predict.h>
#include <dyad/train.h>

#include "base/random.h"
#include "in_folder.h"
#include "training/order_check.h"

namespace dyad {
namespace {

/// More rows than the first block has.
constexpr int many_rows = 5000;

class TargetOrder : public test::InFolder {
 protected:
  /// `count` rows of two numbers, with a target each.
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
  /// First all rows with the first value, then all with the second.
  static std::string sorted_csv(const std::string& first, const std::string& second) {
    return csv(many_rows, 1, constant(first)) + csv(many_rows, 2, constant(second), false);
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

  /// Trains on text that cannot be read twice.
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

TEST_F(TargetOrder, AllRowsOfTextFilesDecideTheTask) {
  for (const auto& [first, second] : {std::pair{"0", "1"}, {"1", "0"}, {"-1", "+1"}, {"spam", "ham"}}) {
    const std::string rows = write("rows.csv", sorted_csv(first, second));
    EXPECT_EQ(train(options_for({rows})).task, Task::classification) << first;
    EXPECT_EQ(evaluated(rows).task, Task::classification);
  }
  // Of a text label that stands alone in the first block, the order of the rows does not decide which is positive.
  (void)write("rows.csv", sorted_csv("spam", "ham"));
  PredictOptions predict_options;
  predict_options.data.paths = {path("rows.csv")};
  predict_options.model_path = path("m.dyad");
  predict_options.output_path = path("p.txt");
  EXPECT_EQ(predict(predict_options).positive, "spam");
}

TEST_F(TargetOrder, AllFilesDecideTheTask) {
  const std::string zeros = write("zeros.csv", csv(many_rows, 1, constant("0")));
  const std::string ones = write("ones.csv", csv(many_rows, 2, constant("1")));
  EXPECT_EQ(train(options_for({zeros, ones})).task, Task::classification);
}

TEST_F(TargetOrder, AllRowsOfLibsvmAndNpyDecideTheTask) {
  std::string text;
  Random random(1, 0);
  for (int i = 0; i < 2 * many_rows; ++i)
    text += std::string(i < many_rows ? "-1" : "1") + " 1:" + std::to_string(random.normal()) + "\n";
  TrainOptions options = options_for({write("rows.svm", text)});
  options.columns.target.clear();
  EXPECT_EQ(train(options).task, Task::classification);

  const auto npy = [&](const std::string& name, int columns, auto&& value) {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(2 * many_rows) +
                         (columns > 1 ? ", " + std::to_string(columns) : ",") + "), }";
    header.resize(118 - 1, ' ');
    header += '\n';
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(118) + '\0' + header;
    for (int i = 0; i < 2 * many_rows * columns; ++i) {
      const double number = value(i);
      bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    return write(name, bytes);
  };
  options.data.paths = {npy("x.npy", 2, [&](int) { return random.normal(); })};
  options.data.target_paths = {npy("y.npy", 1, [&](int i) { return i < many_rows ? 0.0 : 1.0; })};
  EXPECT_EQ(train(options).task, Task::classification);
}

TEST_F(TargetOrder, NumbersBehindManyZerosAreRegression) {
  // Of the size of a million, which the first block does not show.
  const auto number = [](int, double a, double) { return std::to_string(1e6 * (3 + a)); };
  const std::string rows = csv(many_rows, 1, constant("0")) + csv(many_rows, 2, number, false);
  const std::string path_of_rows = write("rows.csv", rows);
  const std::string fresh = write("fresh.csv", csv(1000, 3, number));
  const TrainSummary of_file = train(options_for({path_of_rows}));
  EXPECT_EQ(of_file.task, Task::regression);
  EXPECT_LT(evaluated(fresh).mae, 3e6);  // of the constant of all rows: 1.6e6, of 0: 3e6
  const TrainSummary of_pipe = train_on_pipe(rows, options_for({}));
  EXPECT_EQ(of_pipe.task, Task::regression);
  EXPECT_FALSE(of_pipe.warnings.empty());
  EXPECT_EQ(of_pipe.rows, 2 * many_rows);
  EXPECT_LT(evaluated(fresh).rmse, 1e5);
}

TEST_F(TargetOrder, ASecondValueInAPipeDecidesForClasses) {
  const TrainSummary summary = train_on_pipe(sorted_csv("0", "1"), options_for({}));
  EXPECT_EQ(summary.task, Task::classification);
  EXPECT_FALSE(summary.warnings.empty());
  // Rows whose classes can be told apart are, whatever their order.
  const auto a_above = [](double least, const std::string& label) {
    return [least, label](int, double a, double) { return (a > 0 ? 1.0 : 0.0) == least ? label : std::string(); };
  };
  std::string text = "a,b,y\n";
  for (const double of_class : {0.0, 1.0}) {
    std::istringstream lines(csv(4 * many_rows, 7, a_above(of_class, of_class > 0 ? "1" : "0"), false));
    for (std::string line; std::getline(lines, line);)
      if (!line.ends_with(',')) text += line + "\n";
  }
  EXPECT_EQ(train_on_pipe(text, options_for({})).task, Task::classification);
  const std::string fresh =
      write("fresh.csv", csv(1000, 3, [](int, double a, double) { return std::string(a > 0 ? "1" : "0"); }));
  EXPECT_GT(evaluated(fresh).auc, 0.9);
}

TEST_F(TargetOrder, AGivenTaskStands) {
  const std::string rows = write("rows.csv", sorted_csv("0", "1"));
  TrainOptions options = options_for({rows});
  options.columns.task = Task::regression;
  EXPECT_EQ(train(options).task, Task::regression);
  options.columns.task = Task::classification;
  EXPECT_EQ(train_on_pipe(sorted_csv("0", "7"), options).task, Task::classification);
  // A range is one of numbers.
  options.columns.task.reset();
  options.range = std::pair(0.0, 1.0);
  EXPECT_EQ(train_on_pipe(csv(many_rows, 1, constant("0")), options).task, Task::regression);
  options = options_for({rows});
  options.kind = Kind::phase;
  options.rank.reset();
  EXPECT_EQ(train(options).task, Task::regression);
}

TEST_F(TargetOrder, WrongSecondValuesAreRefusedInTheirPlace) {
  const std::string zeros = write("zeros.csv", csv(many_rows, 1, constant("no")));
  const std::string more = write("more.csv", "a,b,y\n1,1,yes\n1,1,perhaps\n");
  try {
    (void)train(options_for({zeros, more}));
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 3);
    EXPECT_NE(std::string(error.what()).find(more), std::string::npos) << error.what();
  }
  // A word among numbers is no class.
  EXPECT_THROW((void)train_on_pipe(csv(many_rows, 1, constant("0")) + "1,1,spam\n", options_for({})), DataError);
}

TEST_F(TargetOrder, AResumedRunDecidesWhatItsModelLeftOpen) {
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

TEST_F(TargetOrder, ProgressiveMetricsOfSortedRowsAreLeftOut) {
  const auto noisy = [](int, double a, double b) { return std::to_string(a + b * b); };
  const TrainSummary shuffled = train(options_for({write("rows.csv", csv(many_rows, 1, noisy))}));
  EXPECT_LT(shuffled.progressive.rmse, shuffled.progressive.of_best_constant);
  EXPECT_TRUE(std::isfinite(shuffled.metrics.r2));
  const TrainSummary classes = train(options_for({write("rows.csv", sorted_csv("0", "1"))}));
  EXPECT_TRUE(std::isnan(classes.progressive.logloss));
  EXPECT_TRUE(std::isnan(classes.metrics.auc));
  EXPECT_FALSE(classes.warnings.empty());
  const auto rising = [](int i, double a, double) { return std::to_string(0.01 * i + a); };
  EXPECT_TRUE(std::isnan(train(options_for({write("rows.csv", csv(many_rows, 1, rising))})).progressive.r2));
}

TEST(OrderCheck, RowsInRandomOrderPass) {
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
      EXPECT_FALSE(check.is_about_order(model)) << seed;
    }
}

}  // namespace
}  // namespace dyad
