#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <dyad/inspect.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

/// Ratings y = u + v + p q + noise, where every user has (u, p) and every film (v, q), all standard normal.
struct Ratings {
  std::vector<std::int32_t> users;
  std::vector<std::int32_t> films;
  std::vector<double> y;

  Ratings(int count, int first_user, int user_count, std::uint64_t seed) {
    Random random(seed, 0);
    for (int i = 0; i < count; ++i) {
      const int user = first_user + static_cast<int>(user_count * random.uniform());
      const int film = static_cast<int>(40 * random.uniform());
      const std::vector<double> u = effects(user);
      const std::vector<double> v = effects(1'000'000 + film);
      users.push_back(user);
      films.push_back(film);
      y.push_back(u[0] + v[0] + u[1] * v[1] + 0.5 * random.normal());
    }
  }

  /// (u, p) of a user or (v, q) of a film.
  static std::vector<double> effects(int id) {
    Random random(7, static_cast<std::uint64_t>(id));
    return {random.normal(), random.normal()};
  }

  [[nodiscard]] DatasetView view(int known_user_count) const {
    DatasetView rows;
    rows.count = static_cast<Index>(y.size());
    ColumnView user{.name = "user", .is_categorical = true, .codes = users.data()};
    for (int i = 0; i < known_user_count; ++i) user.categories.push_back("u" + std::to_string(i));
    ColumnView film{.name = "film", .is_categorical = true, .codes = films.data()};
    for (int i = 0; i < 40; ++i) film.categories.push_back("f" + std::to_string(i));
    rows.features = std::vector<ColumnView>{std::move(user), std::move(film)};
    rows.targets = y;
    return rows;
  }
};

struct Predicted {
  double rmse = 0;
  double deviation = 0;
  double coverage = 0;  ///< share of residuals below one standard deviation
};

Predicted predicted(const Predictor& predictor, const Ratings& ratings, int known_user_count) {
  std::vector<double> values(ratings.y.size());
  std::vector<double> deviations(ratings.y.size());
  (void)predictor.predict(ratings.view(known_user_count), values, deviations, 1);
  Predicted result;
  const auto count = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double residual = std::abs(values[i] - ratings.y[i]);
    result.rmse += residual * residual / count;
    result.deviation += deviations[i] * deviations[i] / count;
    result.coverage += residual < deviations[i] ? 1 / count : 0;
  }
  result.rmse = std::sqrt(result.rmse);
  result.deviation = std::sqrt(result.deviation);
  return result;
}

TEST(UnknownCategories, AddVarianceOfTheirColumn) {
  for (const int hash_bits : {0, 14}) {
    SCOPED_TRACE(hash_bits);
    const Ratings known(20000, 0, 400, 1);
    const DatasetView rows = known.view(400);
    TrainOptions options;
    options.data.dataset = &rows;
    options.columns.hash_bits = hash_bits;
    options.rank = 2;
    options.threads = 1;
    const Predictor predictor = Predictor::from_bytes(train(options).model_bytes);
    const Predicted known_result = predicted(predictor, Ratings(4000, 0, 400, 2), 400);
    EXPECT_NEAR(known_result.deviation, known_result.rmse, 0.1 * known_result.rmse);
    // 400 users without training rows. The relative standard error of the rmse over users is 1/sqrt(2 * 400) = 3.5%,
    // and that of the second moments of the known users is the same.
    const Predicted unknown_result = predicted(predictor, Ratings(4000, 1000, 400, 3), 1400);
    EXPECT_GT(unknown_result.deviation, 2 * known_result.deviation);
    EXPECT_NEAR(unknown_result.deviation, unknown_result.rmse, 0.25 * unknown_result.rmse);
    EXPECT_NEAR(unknown_result.coverage, 0.68, 0.1);
  }
}

using UnknownIndices = test::TemporaryFolderTest;

// Users have the indices 0 to 19, films 20 to 29, and y = u + v with v about 3. A new film, whose index is in the file
// of groups, is predicted with the mean of the known films.
TEST_F(UnknownIndices, ArePredictedWithTheMeanOfTheirGroup) {
  Random random(3, 0);
  std::string text;
  std::vector<double> effects;
  for (int j = 0; j < 30; ++j) effects.push_back((j < 20 ? 1 : 3) + random.normal());
  for (int i = 0; i < 2000; ++i) {
    const int user = static_cast<int>(20 * random.uniform());
    const int film = 20 + static_cast<int>(10 * random.uniform());
    text += std::to_string(effects[static_cast<std::size_t>(user)] + effects[static_cast<std::size_t>(film)] +
                           0.1 * random.normal()) +
            " " + std::to_string(user) + ":1 " + std::to_string(film) + ":1\n";
  }
  std::string groups;
  for (int j = 0; j < 35; ++j) groups += j < 20 ? "user\n" : "film\n";
  TrainOptions options;
  options.data.paths = {write("rows.svm", text)};
  options.columns.groups_path = write("groups.txt", groups);
  options.model_path = path("m.dyad");
  options.passes = 1;
  options.rank = 2;
  options.threads = 1;
  (void)train(options);
  std::string fresh = "0 3:1 32:1\n";
  for (int film = 20; film < 30; ++film) fresh += "0 3:1 " + std::to_string(film) + ":1\n";
  PredictOptions prediction;
  prediction.data.paths = {write("fresh.svm", fresh)};
  prediction.model_path = path("m.dyad");
  prediction.output_path = path("p.txt");
  (void)predict(prediction);
  std::ifstream file(path("p.txt"));
  std::vector<double> values;
  for (double value = 0; file >> value;) values.push_back(value);
  ASSERT_EQ(values.size(), 11U);
  // The group mean is the mean of 10 effects with deviation 1, shrunk to 0 by about 1 / 10.
  const double mean = std::accumulate(values.begin() + 1, values.end(), 0.0) / 10;
  EXPECT_NEAR(values[0], mean, 0.5);
}

class HashedCategories : public test::TemporaryFolderTest {
 protected:
  /// y = u + noise for one of five categories; the numeric column b has no effect.
  [[nodiscard]] std::string rows(const std::string& name, int count, int first, std::uint64_t seed) const {
    Random random(seed, 0);
    std::string text = "u,b,y\n";
    for (int i = 0; i < count; ++i) {
      const int u = first + static_cast<int>(5 * random.uniform());
      text += "c" + std::to_string(u) + "," + std::to_string(random.normal()) + "," +
              std::to_string(u + 0.1 * random.normal()) + "\n";
    }
    return write(name, text);
  }

  [[nodiscard]] TrainOptions options_for(const std::string& file, Solver solver = Solver::kalman) const {
    TrainOptions options;
    options.data.paths = {file};
    options.columns.target = "y";
    options.columns.hash_bits = 10;
    options.model_path = path("m.dyad");
    options.solver = solver;
    options.rank = 2;
    options.threads = 1;
    return options;
  }

  /// Predictions for `categories` at b = 0, of which `unknown` are unknown to the model.
  [[nodiscard]] std::vector<double> predictions(const std::vector<std::string>& categories, Index unknown) const {
    std::string text = "u,b\n";
    for (const std::string& category : categories) text += category + ",0\n";
    PredictOptions options;
    options.data.paths = {write("fresh.csv", text)};
    options.model_path = path("m.dyad");
    options.output_path = path("p.txt");
    EXPECT_EQ(predict(options).unknown_cells, unknown);
    std::ifstream file(path("p.txt"));
    std::vector<double> values;
    for (double value = 0; file >> value;) values.push_back(value);
    return values;
  }
};

TEST_F(HashedCategories, UnseenCategoriesContributeNothing) {
  for (const Solver solver : {Solver::kalman, Solver::moment, Solver::automatic}) {
    (void)train(options_for(rows("rows.csv", 3000, 0, 1), solver));
    const std::vector<double> values = predictions({"never", "nowhere", "c1"}, 2);
    ASSERT_EQ(values.size(), 3U);
    EXPECT_EQ(values[0], values[1]);
    // Five of 1,024 slots are in use, and no pair has an effect. The spectrum of an average of samples contains the
    // posterior variances of the factors on the diagonal of M, which predictions do not use.
    if (solver == Solver::automatic) continue;
    for (const double lambda : inspect(path("m.dyad"), 0).spectrum) EXPECT_LT(std::abs(lambda), 0.5);
  }
}

TEST_F(HashedCategories, ResumedRunLearnsNewCategories) {
  (void)train(options_for(rows("rows.csv", 2000, 0, 1)));
  (void)predictions({"c7"}, 1);
  TrainOptions more;
  more.data.paths = {rows("more.csv", 2000, 5, 2)};
  more.model_path = path("m.dyad");
  more.resume = true;
  more.threads = 1;
  (void)train(more);
  const std::vector<double> values = predictions({"c1", "c7", "never"}, 1);
  EXPECT_NEAR(values[0], 1, 0.3);
  EXPECT_NEAR(values[1], 7, 0.3);
}

TEST_F(HashedCategories, ResumedRunEqualsSingleRun) {
  const std::string first = rows("first.csv", 500, 0, 1);
  const std::string second = rows("second.csv", 500, 3, 2);
  (void)train(options_for(first));
  TrainOptions more;
  more.data.paths = {second};
  more.model_path = path("m.dyad");
  more.resume = true;
  more.threads = 1;
  (void)train(more);
  const std::string halves = content(path("m.dyad"));
  TrainOptions whole = options_for(first);
  whole.data.paths = {first, second};
  whole.checkpoint_every = 500;
  (void)train(whole);
  EXPECT_TRUE(halves == content(path("m.dyad")));
}

}  // namespace
}  // namespace dyad
