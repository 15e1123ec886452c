#include <dyad/dataset.h>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iomanip>
#include <limits>
#include <numeric>

#include <dyad/error.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

/// Normal features; the target has a linear term, an interaction, a square and noise of standard deviation 0.3.
struct GeneratedRows {
  Index dim = 5;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> weights;

  [[nodiscard]] Index count() const { return static_cast<Index>(y.size()); }

  static GeneratedRows rows(Index count, std::uint64_t seed = 1, Index dim = 5) {
    GeneratedRows data;
    data.dim = dim;
    Random random(seed, 7);
    for (Index i = 0; i < count; ++i) {
      std::vector<double> row;
      for (Index j = 0; j < dim; ++j) row.push_back(random.normal());
      data.y.push_back(3 + row[0] - 2 * row[1] * row[2] + row[3] * row[3] + 0.3 * random.normal());
      data.x.insert(data.x.end(), row.begin(), row.end());
    }
    return data;
  }

  void append(const GeneratedRows& from, Index i) {
    const auto first = from.x.begin() + i * dim;
    x.insert(x.end(), first, first + dim);
    y.push_back(from.y[static_cast<std::size_t>(i)]);
  }

  [[nodiscard]] DatasetView view() const {
    DatasetView rows;
    rows.count = count();
    rows.features = MatrixView{dim, x.data(), dim, 1};
    rows.targets = y;
    rows.weights = weights;
    return rows;
  }
};

class DatasetValidation : public test::TemporaryFolderTest {};

TrainSummary fit(const DatasetView& rows, std::optional<Solver> solver = {}) {
  TrainOptions options;
  options.data.dataset = &rows;
  options.rank = 3;
  options.solver = solver;
  return train(options);
}

std::vector<double> predicted(const std::string& model, const DatasetView& rows) {
  std::vector<double> values(static_cast<std::size_t>(rows.count));
  (void)Predictor::from_bytes(model).predict(rows, values);
  return values;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(a[i]))) << i;
}

TEST(DatasetTraining, IntegerWeightsEqualRepeatedRows) {
  for (const Index count : {8, 15, 30, 31, 60, 200}) {
    SCOPED_TRACE(count);
    GeneratedRows weighted = GeneratedRows::rows(count, static_cast<std::uint64_t>(count));
    GeneratedRows repeated;
    Random random(3, 3);
    for (Index i = 0; i < count; ++i) {
      const auto copies = static_cast<Index>(random.uniform() * 4);
      weighted.weights.push_back(static_cast<double>(copies));
      for (Index copy = 0; copy < copies; ++copy) repeated.append(weighted, i);
    }
    const GeneratedRows fresh = GeneratedRows::rows(50, 9);
    const TrainSummary from_weights = fit(weighted.view());
    const TrainSummary from_copies = fit(repeated.view());
    EXPECT_EQ(from_weights.origin, from_copies.origin);
    expect_close(predicted(from_weights.model_bytes, fresh.view()), predicted(from_copies.model_bytes, fresh.view()),
                 1e-8);
  }
}

TEST(DatasetTraining, RowOrderHasNoEffectInOneBlock) {
  const GeneratedRows data = GeneratedRows::rows(150);
  GeneratedRows reversed;
  for (Index i = data.count() - 1; i >= 0; --i) reversed.append(data, i);
  const GeneratedRows fresh = GeneratedRows::rows(50, 9);
  expect_close(predicted(fit(data.view()).model_bytes, fresh.view()),
               predicted(fit(reversed.view()).model_bytes, fresh.view()), 1e-8);
}

TEST(DatasetTraining, SmallDatasetReachesNoiseLevel) {
  const GeneratedRows data = GeneratedRows::rows(400);
  const GeneratedRows fresh = GeneratedRows::rows(1000, 9);
  const std::vector<double> values = predicted(fit(data.view()).model_bytes, fresh.view());
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    squares += std::pow(values[i] - fresh.y[i], 2) / static_cast<double>(values.size());
  EXPECT_LT(std::sqrt(squares), 0.33);  // the noise is 0.3
}

TEST(DatasetTraining, MatrixLayoutAndTypeHaveNoEffect) {
  const GeneratedRows data = GeneratedRows::rows(60);
  const std::vector<double> expected = predicted(fit(data.view()).model_bytes, data.view());
  std::vector<double> column_major;
  for (Index j = 0; j < data.dim; ++j)
    for (Index i = 0; i < data.count(); ++i) column_major.push_back(data.x[static_cast<std::size_t>(i * data.dim + j)]);
  DatasetView transposed = data.view();
  transposed.features = MatrixView{data.dim, column_major.data(), 1, data.count()};
  expect_close(predicted(fit(transposed).model_bytes, transposed), expected, 1e-12);

  const std::vector<float> single(data.x.begin(), data.x.end());
  DatasetView in_single = data.view();
  in_single.features = MatrixView{data.dim, single.data(), data.dim, 1};
  expect_close(predicted(fit(in_single).model_bytes, in_single), expected, 1e-4);
}

class DatasetAndFile : public test::TemporaryFolderTest {};

TEST_F(DatasetAndFile, GiveIdenticalModels) {
  // A categorical column, a numeric column with missing values and a complete one; as columns in memory and as CSV.
  const std::vector<std::string> names{"red", "green", "blue"};
  Random random(5, 5);
  std::vector<std::int32_t> codes;
  std::vector<double> with_missing;
  std::vector<double> complete;
  std::vector<double> y;
  std::ofstream csv(path("rows.csv"));
  csv << "color,with_missing,complete,y\n" << std::setprecision(17);
  for (int i = 0; i < 300; ++i) {
    codes.push_back(static_cast<std::int32_t>(random.uniform() * 4) - 1);
    with_missing.push_back(random.uniform() < 0.2 ? std::numeric_limits<double>::quiet_NaN() : random.normal());
    complete.push_back(10 + 5 * random.normal());
    y.push_back(static_cast<double>(codes.back()) * complete.back() + random.normal());
    if (codes.back() >= 0) csv << names[static_cast<std::size_t>(codes.back())];
    csv << ',';
    if (!std::isnan(with_missing.back())) csv << with_missing.back();
    csv << ',' << complete.back() << ',' << y.back() << '\n';
  }
  csv.close();
  DatasetView rows;
  rows.count = static_cast<Index>(y.size());
  rows.targets = y;
  rows.features =
      std::vector<ColumnView>{{.name = "color", .is_categorical = true, .codes = codes.data(), .categories = names},
                              {.name = "with_missing", .numbers = with_missing.data()},
                              {.name = "complete", .numbers = complete.data()}};
  TrainOptions options;
  options.columns.target = "y";
  options.rank = 2;
  options.solver = Solver::kalman;
  TrainOptions file_options = options;
  options.data.dataset = &rows;
  const TrainSummary summary = train(options);
  file_options.data.paths = {path("rows.csv")};
  file_options.model_path = path("model.dyad");
  (void)train(file_options);
  std::ifstream file(path("model.dyad"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(bytes == summary.model_bytes);

  // Both can be resumed with the same result.
  options.model_bytes = summary.model_bytes;
  options.resume = file_options.resume = true;
  options.columns = file_options.columns = {};
  const TrainSummary more = train(options);
  (void)train(file_options);
  std::ifstream again(path("model.dyad"), std::ios::binary);
  EXPECT_TRUE(std::string((std::istreambuf_iterator<char>(again)), {}) == more.model_bytes);
}

TEST(DatasetTraining, SparseRowsAreFittedAndIndicesChecked) {
  const GeneratedRows data = GeneratedRows::rows(80);
  std::vector<std::int32_t> offsets{0};
  std::vector<std::int32_t> indices;
  for (Index i = 0; i < data.count(); ++i) {
    for (Index j = 0; j < data.dim; ++j) indices.push_back(static_cast<std::int32_t>(j));
    offsets.push_back(static_cast<std::int32_t>(indices.size()));
  }
  DatasetView sparse = data.view();
  sparse.features = SparseView{data.dim, offsets.data(), indices.data(), data.x.data()};
  const std::vector<double> values = predicted(fit(sparse).model_bytes, sparse);
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    squares += std::pow(values[i] - data.y[i], 2) / static_cast<double>(values.size());
  EXPECT_LT(std::sqrt(squares), 0.5);

  indices[1] = 0;
  EXPECT_THROW((void)fit(sparse), std::invalid_argument);
  indices[1] = 5;
  EXPECT_THROW((void)fit(sparse), std::invalid_argument);
}

/// Users and films have no main effects: the signal is an interaction of rank 2.
TEST(DatasetTraining, PureInteractionsAreRecovered) {
  constexpr Index users = 300;
  constexpr Index films = 200;
  Random random(1, 1);
  std::vector<double> factors;
  for (Index i = 0; i < 2 * (users + films); ++i) factors.push_back(random.normal());
  std::vector<std::int32_t> offsets{0};
  std::vector<std::int32_t> indices;
  std::vector<double> y;
  for (int i = 0; i < 30'000; ++i) {
    const auto user = static_cast<std::int32_t>(random.uniform() * users);
    const auto film = static_cast<std::int32_t>(users + random.uniform() * films);
    indices.insert(indices.end(), {user, film});
    offsets.push_back(static_cast<std::int32_t>(indices.size()));
    const auto factor = [&](std::int32_t feature, int k) { return factors[static_cast<std::size_t>(2 * feature + k)]; };
    y.push_back(factor(user, 0) * factor(film, 0) + factor(user, 1) * factor(film, 1) + 0.5 * random.normal());
  }
  const std::vector<double> ones(indices.size(), 1.0);
  DatasetView rows;
  rows.count = static_cast<Index>(y.size());
  rows.features = SparseView{users + films, offsets.data(), indices.data(), ones.data()};
  rows.targets = y;
  const std::vector<double> values = predicted(fit(rows).model_bytes, rows);
  double squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) squares += std::pow(values[i] - y[i], 2) / static_cast<double>(y.size());
  EXPECT_LT(std::sqrt(squares), 0.55);
}

TEST(DatasetTraining, LabelsAreStoredInTheModel) {
  GeneratedRows data = GeneratedRows::rows(300);
  for (double& y : data.y) y = y > 3 ? 1 : 0;
  DatasetView rows = data.view();
  rows.labels = {"ham", "spam"};
  const std::string model = fit(rows).model_bytes;
  EXPECT_EQ(Predictor::from_bytes(model).labels(), rows.labels);
  const std::vector<double> values = predicted(model, rows);
  Index correct = 0;
  for (std::size_t i = 0; i < values.size(); ++i) correct += (values[i] > 0.5) == (data.y[i] > 0.5) ? 1 : 0;
  EXPECT_GT(correct, 270);
}

TEST(DatasetTraining, InvalidRowsAreRejected) {
  const GeneratedRows data = GeneratedRows::rows(20);
  const auto expect_rejected = [&](auto&& change) {
    DatasetView rows = data.view();
    change(rows);
    EXPECT_ANY_THROW((void)fit(rows));
  };
  std::vector<double> wrong = data.y;
  expect_rejected([&](DatasetView& rows) { rows.targets = rows.targets.first(3); });
  expect_rejected([&](DatasetView& rows) { rows.weights = rows.targets.first(3); });
  expect_rejected([&](DatasetView& rows) {
    wrong[2] = -1;
    rows.weights = wrong;
  });
  expect_rejected([&](DatasetView& rows) {
    wrong[2] = std::numeric_limits<double>::infinity();
    rows.targets = wrong;
  });
  expect_rejected([&](DatasetView& rows) { rows.labels = {"a", "b", "c"}; });
  std::vector<double> x = data.x;
  x[7] = std::numeric_limits<double>::quiet_NaN();
  expect_rejected([&](DatasetView& rows) { rows.features = MatrixView{data.dim, x.data(), data.dim, 1}; });
  const std::string model = fit(data.view()).model_bytes;
  DatasetView fewer_columns = data.view();
  fewer_columns.features = MatrixView{3, data.x.data(), data.dim, 1};
  EXPECT_THROW((void)predicted(model, fewer_columns), std::invalid_argument);
}

TEST(DatasetTraining, ErrorBarsCoverNewRows) {
  const GeneratedRows data = GeneratedRows::rows(200);
  const Predictor predictor = Predictor::from_bytes(fit(data.view()).model_bytes);
  std::vector<double> values(data.y.size());
  std::vector<double> deviations(data.y.size());
  const GeneratedRows fresh = GeneratedRows::rows(200, 11);
  (void)predictor.predict(fresh.view(), values, deviations);
  Index within = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    within += std::abs(values[i] - fresh.y[i]) < 2 * deviations[i] ? 1 : 0;
  EXPECT_GT(within, 180);
  EXPECT_LT(std::accumulate(deviations.begin(), deviations.end(), 0.0), 0.6 * 200);
}

TEST(DatasetView, BorrowedAndCopiedSparseRowsGiveIdenticalModels) {
  for (const bool ones : {true, false}) {
    Random random(5, 7);
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    std::vector<std::int32_t> offsets{0};
    std::vector<double> targets;
    for (int i = 0; i < 6000; ++i) {
      const auto user = static_cast<std::int32_t>(random.uniform() * 40);
      const auto film = static_cast<std::int32_t>(random.uniform() * 30);
      columns.insert(columns.end(), {user, 40 + film, 70});
      const double value = ones ? 1 : 0.25 + std::floor(4 * random.uniform());
      values.insert(values.end(), {value, 1, i % 3 == 0 ? 0.0 : 1.0});  // with explicit zeros
      offsets.push_back(static_cast<std::int32_t>(columns.size()));
      targets.push_back(value * (user % 5) * (film % 3) + 0.2 * random.normal());
    }
    DatasetView borrowed;
    borrowed.count = 6000;
    borrowed.features = SparseView{71, offsets.data(), columns.data(), values.data()};
    borrowed.targets = targets;
    const std::vector<std::int64_t> wide(columns.begin(), columns.end());
    DatasetView copied = borrowed;
    copied.features = SparseView{71, offsets.data(), wide.data(), values.data()};
    const TrainSummary summary = fit(borrowed, Solver::sampling);
    EXPECT_EQ(summary.model_bytes, fit(copied, Solver::sampling).model_bytes);
    EXPECT_EQ(summary.solver, Solver::sampling);
    EXPECT_EQ(summary.model_bytes, fit(borrowed, Solver::sampling).model_bytes) << "training changed the rows";
  }
}

/// The level is selected by the loss that the final model has on the validation rows. Missing values are encoded as 0,
/// so that the root mean square of the other values, by which the features of these rows are divided, is not 1.
TEST_F(DatasetValidation, SelectionUsesTheLossOfTheFinalModel) {
  GeneratedRows data = GeneratedRows::rows(200);
  for (Index i = 0; i < data.count(); i += 20) data.x[static_cast<std::size_t>(i * data.dim)] = 1000;
  const GeneratedRows fresh = GeneratedRows::rows(300, 9);
  std::string text;
  std::vector<ColumnView> columns;
  for (Index j = 0; j < data.dim; ++j) {
    columns.push_back({.name = "x" + std::to_string(j), .numbers = data.x.data() + j, .stride = data.dim});
    text += columns.back().name + ",";
  }
  text += "y\n";
  for (Index i = 0; i < fresh.count(); ++i) {
    for (Index j = 0; j < fresh.dim; ++j)
      text += std::to_string(fresh.x[static_cast<std::size_t>(i * fresh.dim + j)]) + ",";
    text += std::to_string(fresh.y[static_cast<std::size_t>(i)]) + "\n";
  }
  DatasetView rows = data.view();
  rows.features = columns;
  TrainOptions options;
  options.data.dataset = &rows;
  options.columns.target = "y";
  options.validation_path = write("validation.csv", text);
  options.rank = 3;
  double best = std::numeric_limits<double>::infinity();
  TrainHooks hooks;
  hooks.multi_pass = [&](const MultiPassProgress& step) { best = std::fmin(best, step.held_out); };
  const TrainSummary summary = train(options, hooks);
  ASSERT_TRUE(summary.validation);
  EXPECT_NEAR(best, summary.validation->rmse, 1e-6 * summary.validation->rmse);
}

/// Without a model path, the validation rows are predicted by the model in memory.
TEST_F(DatasetValidation, NeedsNoModelPath) {
  std::vector<std::int32_t> columns;
  std::vector<std::int32_t> offsets{0};
  std::vector<double> targets;
  std::string text;
  for (std::int32_t i = 0; i < 400; ++i) {
    columns.insert(columns.end(), {i % 7, 7 + i % 5});
    offsets.push_back(static_cast<std::int32_t>(columns.size()));
    targets.push_back(i % 7 + i % 5 + 0.1 * (i % 3));
    text += std::to_string(targets.back()) + " " + std::to_string(i % 7) + ":1 " + std::to_string(7 + i % 5) + ":1\n";
  }
  const std::vector<double> ones(columns.size(), 1);
  DatasetView rows;
  rows.count = static_cast<Index>(targets.size());
  rows.features = SparseView{12, offsets.data(), columns.data(), ones.data()};
  rows.targets = targets;
  TrainOptions options;
  options.data.dataset = &rows;
  options.validation_path = write("validation.svm", text);
  const TrainSummary summary = train(options);
  ASSERT_TRUE(summary.validation);
  EXPECT_GT(summary.validation->r2, 0.9);
  std::vector<double> values(targets.size());
  (void)Predictor::from_bytes(summary.model_bytes).predict(rows, values);
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) squares += (values[i] - targets[i]) * (values[i] - targets[i]);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), summary.validation->rmse, 1e-5);

  // Invalid rows anywhere in the validation file are reported before training.
  std::string long_text;
  while (long_text.size() < 1'000'000) long_text += text;
  options.validation_path = write("validation.svm", long_text + "1 2:x\n");
  bool has_started = false;
  TrainHooks hooks;
  hooks.start = [&](const TrainStart&) { has_started = true; };
  EXPECT_THROW((void)train(options, hooks), DataError);
  EXPECT_FALSE(has_started);
}

}  // namespace
}  // namespace dyad
