#include <dyad/predictor.h>

#include <thread>

#include <gtest/gtest.h>

#include <dyad/dataset.h>
#include <dyad/train.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Rows with a numeric and a categorical column. No row has the last category.
struct MixedRows {
  explicit MixedRows(Index count) {
    Random random(1, 0);
    for (Index i = 0; i < count; ++i) {
      numbers.push_back(random.normal());
      codes.push_back(static_cast<std::int32_t>(i % 3));
      targets.push_back(numbers.back() * codes.back() + 0.1 * random.normal());
    }
    ColumnView number{.name = "number", .numbers = numbers.data()};
    ColumnView category{
        .name = "category", .is_categorical = true, .codes = codes.data(), .categories = {"a", "b", "c", "unknown"}};
    rows.count = count;
    rows.features = std::vector<ColumnView>{number, category};
    rows.targets = targets;
  }
  MixedRows(const MixedRows&) = delete;
  MixedRows& operator=(const MixedRows&) = delete;

  std::vector<double> numbers;
  std::vector<std::int32_t> codes;
  std::vector<double> targets;
  DatasetView rows;
};

/// The thread sanitizer reports writes to shared data. Without it, the test compares the predictions.
TEST(ThreadSafety, PredictorIsThreadSafe) {
  MixedRows mixed(200);
  TrainOptions options;
  options.data.dataset = &mixed.rows;
  options.rank = 2;
  options.solver = Solver::kalman;
  options.threads = 1;
  const Predictor predictor = Predictor::from_bytes(train(options).model_bytes);
  mixed.codes[5] = 3;
  std::vector<double> expected(200);
  std::vector<double> deviations(200);
  (void)predictor.predict(mixed.rows, expected, deviations, 1);
  std::vector<std::vector<double>> predicted(4, std::vector<double>(200));
  std::vector<std::thread> threads;
  for (auto& values : predicted)
    threads.emplace_back([&] {
      std::vector<double> thread_deviations(200);
      for (int repetition = 0; repetition < 10; ++repetition)
        EXPECT_EQ(predictor.predict(mixed.rows, values, thread_deviations, 1).unknown_cells, 1);
      EXPECT_EQ(thread_deviations, deviations);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : predicted) EXPECT_EQ(values, expected);
}

}  // namespace
}  // namespace dyad
