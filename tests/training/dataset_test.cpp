#include <dyad/memory.h>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iomanip>
#include <numeric>

#include <dyad/data_error.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"
#include "in_folder.h"

namespace dyad {
namespace {

/// Targets with pairs, squares and noise.
struct MadeRows {
  Index dim = 5;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> weights;

  [[nodiscard]] Index count() const { return static_cast<Index>(y.size()); }

  static MadeRows rows(Index count, std::uint64_t seed = 1, Index dim = 5) {
    MadeRows made;
    made.dim = dim;
    Random random(seed, 7);
    for (Index i = 0; i < count; ++i) {
      std::vector<double> row;
      for (Index j = 0; j < dim; ++j) row.push_back(random.normal());
      made.y.push_back(3 + row[0] - 2 * row[1] * row[2] + row[3] * row[3] + 0.3 * random.normal());
      made.x.insert(made.x.end(), row.begin(), row.end());
    }
    return made;
  }

  void append(const MadeRows& from, Index i) {
    const auto first = from.x.begin() + i * dim;
    x.insert(x.end(), first, first + dim);
    y.push_back(from.y[static_cast<std::size_t>(i)]);
  }

  [[nodiscard]] MemoryRows view() const {
    MemoryRows rows;
    rows.count = count();
    rows.features = MemoryMatrix{dim, x.data(), dim, 1};
    rows.targets = y;
    rows.weights = weights;
    return rows;
  }
};

class MemoryValidation : public test::InFolder {};

TrainSummary fit(const MemoryRows& rows, std::optional<Solver> solver = {}) {
  TrainOptions options;
  options.data.memory = &rows;
  options.rank = 3;
  options.solver = solver;
  return train(options);
}

std::vector<double> predicted(const std::string& model, const MemoryRows& rows) {
  std::vector<double> values(static_cast<std::size_t>(rows.count));
  (void)Predictor::from_bytes(model).predict(rows, values);
  return values;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(a[i]))) << i;
}

TEST(Memory, AWeightCountsAsManyCopies) {
  for (const Index count : {8, 15, 30, 31, 60, 200}) {
    SCOPED_TRACE(count);
    MadeRows weighted = MadeRows::rows(count, static_cast<std::uint64_t>(count));
    MadeRows repeated;
    Random random(3, 3);
    for (Index i = 0; i < count; ++i) {
      const auto copies = static_cast<Index>(random.uniform() * 4);
      weighted.weights.push_back(static_cast<double>(copies));
      for (Index copy = 0; copy < copies; ++copy) repeated.append(weighted, i);
    }
    const MadeRows fresh = MadeRows::rows(50, 9);
    const TrainSummary of_weights = fit(weighted.view());
    const TrainSummary of_copies = fit(repeated.view());
    EXPECT_EQ(of_weights.origin, of_copies.origin);
    expect_close(predicted(of_weights.model_bytes, fresh.view()), predicted(of_copies.model_bytes, fresh.view()), 1e-8);
  }
}

TEST(Memory, TheOrderOfFewRowsDoesNotMatter) {
  const MadeRows made = MadeRows::rows(150);
  MadeRows turned;
  for (Index i = made.count() - 1; i >= 0; --i) turned.append(made, i);
  const MadeRows fresh = MadeRows::rows(50, 9);
  expect_close(predicted(fit(made.view()).model_bytes, fresh.view()),
               predicted(fit(turned.view()).model_bytes, fresh.view()), 1e-8);
}

TEST(Memory, FewRowsAreLearnedWell) {
  const MadeRows made = MadeRows::rows(400);
  const MadeRows fresh = MadeRows::rows(1000, 9);
  const std::vector<double> values = predicted(fit(made.view()).model_bytes, fresh.view());
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    squares += std::pow(values[i] - fresh.y[i], 2) / static_cast<double>(values.size());
  EXPECT_LT(std::sqrt(squares), 0.33);  // of which 0.3 is noise
}

TEST(Memory, LayoutsAndTypesDoNotMatter) {
  const MadeRows made = MadeRows::rows(60);
  const std::vector<double> expected = predicted(fit(made.view()).model_bytes, made.view());
  std::vector<double> by_columns;
  for (Index j = 0; j < made.dim; ++j)
    for (Index i = 0; i < made.count(); ++i) by_columns.push_back(made.x[static_cast<std::size_t>(i * made.dim + j)]);
  MemoryRows turned = made.view();
  turned.features = MemoryMatrix{made.dim, by_columns.data(), 1, made.count()};
  expect_close(predicted(fit(turned).model_bytes, turned), expected, 1e-12);

  const std::vector<float> single(made.x.begin(), made.x.end());
  MemoryRows narrow = made.view();
  narrow.features = MemoryMatrix{made.dim, single.data(), made.dim, 1};
  expect_close(predicted(fit(narrow).model_bytes, narrow), expected, 1e-4);
}

class MemoryAndFiles : public test::InFolder {};

TEST_F(MemoryAndFiles, GiveTheSameModel) {
  // A category, a number with gaps, and a number; as a table in memory and as text.
  const std::vector<std::string> names{"red", "green", "blue"};
  Random random(5, 5);
  std::vector<std::int32_t> codes;
  std::vector<double> gappy;
  std::vector<double> full;
  std::vector<double> y;
  std::ofstream csv(path("rows.csv"));
  csv << "colour,gappy,full,y\n" << std::setprecision(17);
  for (int i = 0; i < 300; ++i) {
    codes.push_back(static_cast<std::int32_t>(random.uniform() * 4) - 1);
    gappy.push_back(random.uniform() < 0.2 ? std::numeric_limits<double>::quiet_NaN() : random.normal());
    full.push_back(10 + 5 * random.normal());
    y.push_back(static_cast<double>(codes.back()) * full.back() + random.normal());
    if (codes.back() >= 0) csv << names[static_cast<std::size_t>(codes.back())];
    csv << ',';
    if (!std::isnan(gappy.back())) csv << gappy.back();
    csv << ',' << full.back() << ',' << y.back() << '\n';
  }
  csv.close();
  MemoryRows rows;
  rows.count = static_cast<Index>(y.size());
  rows.targets = y;
  rows.features =
      std::vector<MemoryColumn>{{.name = "colour", .is_category = true, .codes = codes.data(), .categories = names},
                                {.name = "gappy", .numbers = gappy.data()},
                                {.name = "full", .numbers = full.data()}};
  TrainOptions options;
  options.columns.target = "y";
  options.rank = 2;
  options.solver = Solver::kalman;
  TrainOptions of_file = options;
  options.data.memory = &rows;
  const TrainSummary summary = train(options);
  of_file.data.paths = {path("rows.csv")};
  of_file.model_path = path("model.dyad");
  (void)train(of_file);
  std::ifstream file(path("model.dyad"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(bytes == summary.model_bytes);

  // And both go on alike.
  options.model_bytes = summary.model_bytes;
  options.resume = of_file.resume = true;
  options.columns = of_file.columns = {};
  const TrainSummary more = train(options);
  (void)train(of_file);
  std::ifstream again(path("model.dyad"), std::ios::binary);
  EXPECT_TRUE(std::string((std::istreambuf_iterator<char>(again)), {}) == more.model_bytes);
}

TEST(Memory, SparseRowsAreLearnedLikeDenseOnesWhereTheyAre) {
  const MadeRows made = MadeRows::rows(80);
  std::vector<std::int32_t> offsets{0};
  std::vector<std::int32_t> indices;
  for (Index i = 0; i < made.count(); ++i) {
    for (Index j = 0; j < made.dim; ++j) indices.push_back(static_cast<std::int32_t>(j));
    offsets.push_back(static_cast<std::int32_t>(indices.size()));
  }
  MemoryRows sparse = made.view();
  sparse.features = MemorySparse{made.dim, offsets.data(), indices.data(), made.x.data()};
  const std::vector<double> values = predicted(fit(sparse).model_bytes, sparse);
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    squares += std::pow(values[i] - made.y[i], 2) / static_cast<double>(values.size());
  EXPECT_LT(std::sqrt(squares), 0.5);

  indices[1] = 0;
  EXPECT_THROW((void)fit(sparse), std::invalid_argument);
  indices[1] = 5;
  EXPECT_THROW((void)fit(sparse), std::invalid_argument);
}

/// Users and films without merits of their own: all there is to learn lies in the pairs.
TEST(Memory, PairsAloneAreFound) {
  constexpr Index users = 300;
  constexpr Index films = 200;
  Random random(1, 1);
  std::vector<double> taste;
  for (Index i = 0; i < 2 * (users + films); ++i) taste.push_back(random.normal());
  std::vector<std::int32_t> offsets{0};
  std::vector<std::int32_t> indices;
  std::vector<double> y;
  for (int i = 0; i < 30'000; ++i) {
    const auto user = static_cast<std::int32_t>(random.uniform() * users);
    const auto film = static_cast<std::int32_t>(users + random.uniform() * films);
    indices.insert(indices.end(), {user, film});
    offsets.push_back(static_cast<std::int32_t>(indices.size()));
    const auto of = [&](std::int32_t who, int factor) { return taste[static_cast<std::size_t>(2 * who + factor)]; };
    y.push_back(of(user, 0) * of(film, 0) + of(user, 1) * of(film, 1) + 0.5 * random.normal());
  }
  const std::vector<double> ones(indices.size(), 1.0);
  MemoryRows rows;
  rows.count = static_cast<Index>(y.size());
  rows.features = MemorySparse{users + films, offsets.data(), indices.data(), ones.data()};
  rows.targets = y;
  const std::vector<double> values = predicted(fit(rows).model_bytes, rows);
  double squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) squares += std::pow(values[i] - y[i], 2) / static_cast<double>(y.size());
  EXPECT_LT(std::sqrt(squares), 0.55);
}

TEST(Memory, ClassesHaveTheirLabels) {
  MadeRows made = MadeRows::rows(300);
  for (double& y : made.y) y = y > 3 ? 1 : 0;
  MemoryRows rows = made.view();
  rows.labels = {"ham", "spam"};
  const std::string model = fit(rows).model_bytes;
  EXPECT_EQ(Predictor::from_bytes(model).labels(), rows.labels);
  const std::vector<double> values = predicted(model, rows);
  Index right = 0;
  for (std::size_t i = 0; i < values.size(); ++i) right += (values[i] > 0.5) == (made.y[i] > 0.5) ? 1 : 0;
  EXPECT_GT(right, 270);
}

TEST(Memory, WrongRowsAreRefused) {
  const MadeRows made = MadeRows::rows(20);
  const auto refused = [&](auto&& change) {
    MemoryRows rows = made.view();
    change(rows);
    EXPECT_ANY_THROW((void)fit(rows));
  };
  std::vector<double> wrong = made.y;
  refused([&](MemoryRows& rows) { rows.targets = rows.targets.first(3); });
  refused([&](MemoryRows& rows) { rows.weights = rows.targets.first(3); });
  refused([&](MemoryRows& rows) {
    wrong[2] = -1;
    rows.weights = wrong;
  });
  refused([&](MemoryRows& rows) {
    wrong[2] = std::numeric_limits<double>::infinity();
    rows.targets = wrong;
  });
  refused([&](MemoryRows& rows) { rows.labels = {"a", "b", "c"}; });
  std::vector<double> x = made.x;
  x[7] = std::numeric_limits<double>::quiet_NaN();
  refused([&](MemoryRows& rows) { rows.features = MemoryMatrix{made.dim, x.data(), made.dim, 1}; });
  const std::string model = fit(made.view()).model_bytes;
  MemoryRows narrow = made.view();
  narrow.features = MemoryMatrix{3, made.x.data(), made.dim, 1};
  EXPECT_THROW((void)predicted(model, narrow), std::invalid_argument);
}

TEST(Memory, ErrorBarsComeAlong) {
  const MadeRows made = MadeRows::rows(200);
  const Predictor predictor = Predictor::from_bytes(fit(made.view()).model_bytes);
  std::vector<double> values(made.y.size());
  std::vector<double> deviations(made.y.size());
  const MadeRows fresh = MadeRows::rows(200, 11);
  (void)predictor.predict(fresh.view(), values, deviations);
  Index within = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    within += std::abs(values[i] - fresh.y[i]) < 2 * deviations[i] ? 1 : 0;
  EXPECT_GT(within, 180);
  EXPECT_LT(std::accumulate(deviations.begin(), deviations.end(), 0.0), 0.6 * 200);
}

TEST(MemoryRows, SparseRowsAreTheSameWhereTheyLieAndCopied) {
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
      values.insert(values.end(), {value, 1, i % 3 == 0 ? 0.0 : 1.0});  // some entries are zeros that are written out
      offsets.push_back(static_cast<std::int32_t>(columns.size()));
      targets.push_back(value * (user % 5) * (film % 3) + 0.2 * random.normal());
    }
    MemoryRows lent;
    lent.count = 6000;
    lent.features = MemorySparse{71, offsets.data(), columns.data(), values.data()};
    lent.targets = targets;
    const std::vector<std::int64_t> wide(columns.begin(), columns.end());
    MemoryRows copied = lent;
    copied.features = MemorySparse{71, offsets.data(), wide.data(), values.data()};
    const TrainSummary summary = fit(lent);
    EXPECT_EQ(summary.model_bytes, fit(copied).model_bytes);
    EXPECT_EQ(summary.solver, Solver::variational);
    EXPECT_EQ(summary.model_bytes, fit(lent).model_bytes) << "the rows have been changed";
  }
}

/// The model has no file, so that the validation rows are predicted by the model in memory.
TEST_F(MemoryValidation, NeedsNoModelPath) {
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
  MemoryRows rows;
  rows.count = static_cast<Index>(targets.size());
  rows.features = MemorySparse{12, offsets.data(), columns.data(), ones.data()};
  rows.targets = targets;
  TrainOptions options;
  options.data.memory = &rows;
  options.validation_path = write("validation.svm", text);
  const TrainSummary summary = train(options);
  ASSERT_TRUE(summary.validation);
  EXPECT_GT(summary.validation->r2, 0.9);
  std::vector<double> values(targets.size());
  (void)Predictor::from_bytes(summary.model_bytes).predict(rows, values);
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) squares += (values[i] - targets[i]) * (values[i] - targets[i]);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(values.size())), summary.validation->rmse, 1e-5);

  // Bad rows are reported before training, wherever they are in the file.
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
