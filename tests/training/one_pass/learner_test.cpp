#include <dyad/learner.h>

#include <cmath>

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "likelihood/likelihood.h"
#include "likelihood/logistic.h"
#include "support.h"

namespace dyad {
namespace {

using test::OwnedRows;
using test::random_model;
using test::random_rows;

template <typename Scalar>
OwnedRows<Scalar> planted_rows(const Model<Scalar>& truth, Index count, double noise) {
  auto rows = random_rows<Scalar>(count, truth.dim(), 2);
  const Vector<Scalar> f = test::brute_force_predictions(truth, rows.X);
  Random random(3, 9);
  for (Index i = 0; i < count; ++i)
    rows.targets[static_cast<std::size_t>(i)] = f[i] + static_cast<Scalar>(noise * random.normal());
  return rows;
}

template <typename Scalar>
class LearnerTest : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(LearnerTest, Scalars);

TYPED_TEST(LearnerTest, DeviationsCoverTheTargets) {
  const Model<TypeParam> truth = random_model<TypeParam>(8, 2, 1);
  const auto rows = planted_rows(truth, 6000, 0.3);
  LearnerOptions options;
  options.shape.dim = 8;
  options.shape.rank = 2;
  Learner<TypeParam> learner(options);
  std::vector<TypeParam> prediction(1);
  for (Index i = 0; i < 5000; ++i) {
    learner.learn(rows.dense().slice(i, 1), prediction);
    EXPECT_TRUE(std::isfinite(prediction[0]));
  }
  EXPECT_EQ(learner.rows(), 5000);
  EXPECT_NEAR(learner.noise(), 0.3, 0.02);
  std::vector<TypeParam> values(1000);
  std::vector<TypeParam> deviations(1000);
  const Rows<TypeParam> fresh = rows.dense().slice(5000, 1000);
  learner.predict(fresh, values, deviations);
  int within_one = 0;
  int within_two = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const double z = std::abs(static_cast<double>((fresh.targets()[i] - values[i]) / deviations[i]));
    within_one += z < 1 ? 1 : 0;
    within_two += z < 1.96 ? 1 : 0;
  }
  EXPECT_NEAR(within_one, 683, 50);
  EXPECT_NEAR(within_two, 950, 25);
}

TEST(Learner, PredictsProbabilitiesOfClasses) {
  const Model<double> truth = random_model<double>(5, 1, 1);
  auto rows = planted_rows(truth, 4000, 0);
  for (double& y : rows.targets) y = y > 0 ? 1 : 0;
  LearnerOptions options;
  options.shape.dim = 5;
  options.shape.rank = 1;
  options.task = Task::classification;
  Learner<double> learner(options);
  std::vector<double> predictions(4000);
  learner.learn(rows.dense(), predictions);
  int correct = 0;
  for (std::size_t i = 0; i < 4000; ++i) {
    EXPECT_GT(predictions[i], 0);
    EXPECT_LT(predictions[i], 1);
    if (i >= 3000) correct += (predictions[i] > 0.5) == (rows.targets[i] > 0.5) ? 1 : 0;
  }
  EXPECT_GT(correct, 950);
}

/// Rows of three normal features, or (`is_one_hot`) of two one-hot columns with 20 and 5 categories. `positive` of them
/// are of the positive class: drawn at random or, if `related`, three times as likely if the first feature is positive,
/// or if the first category is one of the first ten.
OwnedRows<double> rare_class_rows(bool is_one_hot, Index count, Index positive, bool related, std::uint64_t seed) {
  Random random(seed, 0);
  RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(count, is_one_hot ? 25 : 3);
  std::vector<double> targets;
  Index remaining = positive;
  for (Index i = 0; i < count; ++i) {
    bool is_likely = false;
    if (is_one_hot) {
      const auto first = static_cast<Index>(20 * random.uniform());
      X(i, first) = X(i, 20 + static_cast<Index>(5 * random.uniform())) = 1;
      is_likely = first < 10;
    } else {
      for (Index j = 0; j < 3; ++j) X(i, j) = random.normal();
      is_likely = X(i, 0) > 0;
    }
    const double share = static_cast<double>(remaining) / static_cast<double>(count - i);
    const bool is_positive =
        remaining > 0 && (random.uniform() < share * (related ? (is_likely ? 1.5 : 0.5) : 1) || remaining >= count - i);
    remaining -= is_positive ? 1 : 0;
    targets.push_back(is_positive ? 1 : -1);
  }
  return {X, targets};
}

double mean_log_loss(const std::vector<double>& probabilities, const std::vector<double>& targets) {
  double sum = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) sum += log_loss(targets[i] > 0 ? 1 : 0, probabilities[i]);
  return sum / static_cast<double>(targets.size());
}

TEST(Learner, RareClassIsPredictedByTheConstant) {
  const double constant = binary_entropy(0.001);  // learned and fresh rows have the same share of positive ones
  for (const bool is_one_hot : {false, true})
    for (const bool related : {false, true})
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const auto rows = rare_class_rows(is_one_hot, 1000, 1, related, seed);
        LearnerOptions options;
        options.shape.dim = rows.X.cols();
        options.shape.rank = 2;
        options.shape.diagonal = Diagonal::free;
        options.task = Task::classification;
        Learner<double> learner(options);
        for (Index i = 0; i < 1000; ++i) learner.learn(rows.sparse().slice(i, 1));
        const auto fresh = rare_class_rows(is_one_hot, 10000, 10, related, 100 + seed);
        std::vector<double> predictions(1000);
        learner.predict(rows.sparse(), predictions);
        EXPECT_LE(mean_log_loss(predictions, rows.targets), constant * (1 + 1e-9)) << seed;
        predictions.resize(10000);
        learner.predict(fresh.sparse(), predictions);
        EXPECT_LE(mean_log_loss(predictions, fresh.targets), constant * (1 + 1e-9)) << seed;
        EXPECT_NEAR(logistic(learner.model().intercept), 0.001, 1e-9);
      }
}

TEST(Learner, SeparableClassesReplaceTheConstant) {
  const auto rows = random_rows<double>(2100, 3, 1);
  std::vector<double> targets;
  for (Index i = 0; i < 2100; ++i) targets.push_back(rows.X(i, 0) > 0 ? 1 : -1);
  const OwnedRows<double> classes(rows.X, targets);
  LearnerOptions options;
  options.shape.dim = 3;
  options.shape.rank = 1;
  options.task = Task::classification;
  Learner<double> learner(options);
  std::vector<double> predictions(100);
  learner.learn(classes.dense().slice(0, 100), predictions);
  EXPECT_NE(predictions.back(), predictions[predictions.size() - 2]);  // not the constant
  predictions.resize(2000);
  learner.predict(classes.dense().slice(100, 2000), predictions);
  const std::vector<double> fresh(targets.begin() + 100, targets.end());
  EXPECT_LT(mean_log_loss(predictions, fresh), 0.35);
}

/// Ratings y = u + v + p q + noise of `count` rows. Features [0, 800) are users, of which 400 from `first_user` on
/// occur; features [800, 840) are films. (u, p) of a user and (v, q) of a film are standard normal.
OwnedRows<double> rating_rows(Index count, Index first_user, std::uint64_t seed) {
  Random random(seed, 0);
  RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(count, 840);
  std::vector<double> targets;
  for (Index i = 0; i < count; ++i) {
    const Index user = first_user + static_cast<Index>(400 * random.uniform());
    const Index film = 800 + static_cast<Index>(40 * random.uniform());
    Random of_user(7, static_cast<std::uint64_t>(user));
    Random of_film(7, static_cast<std::uint64_t>(film));
    X(i, user) = X(i, film) = 1;
    const double main_effects = of_user.normal() + of_film.normal();
    targets.push_back(main_effects + of_user.normal() * of_film.normal() + 0.5 * random.normal());
  }
  return {X, targets};
}

TYPED_TEST(LearnerTest, UnseenFeaturesIncreaseDeviations) {
  const auto cast_rows = [](const OwnedRows<double>& rows) {
    return OwnedRows<TypeParam>(rows.X.template cast<TypeParam>(),
                                std::vector<TypeParam>(rows.targets.begin(), rows.targets.end()));
  };
  LearnerOptions options;
  options.shape.dim = 840;
  options.shape.rank = 2;
  options.shape.diagonal = Diagonal::free;
  Learner<TypeParam> learner(options);
  learner.learn(cast_rows(rating_rows(8000, 0, 1)).sparse());
  const auto unseen = cast_rows(rating_rows(4000, 400, 2));
  auto without = unseen;
  without.X.leftCols(800).setZero();
  without = OwnedRows<TypeParam>(without.X, without.targets);
  std::vector<TypeParam> values[3];
  std::vector<TypeParam> deviations[3];
  for (int i = 0; i < 3; ++i) {
    values[i].resize(4000);
    deviations[i].resize(4000);
  }
  const std::vector<Index> one(4000, 1);
  learner.predict(unseen.sparse(), values[0], deviations[0]);
  learner.predict(without.sparse(), values[1], deviations[1]);
  learner.predict(without.sparse(), values[2], deviations[2], one);
  double squares = 0;
  double variance = 0;
  double coverage = 0;
  for (std::size_t i = 0; i < 4000; ++i) {
    EXPECT_EQ(values[0][i], values[1][i]);
    EXPECT_GT(deviations[0][i], deviations[1][i]);
    EXPECT_NEAR(deviations[0][i], deviations[2][i], 1e-5 * deviations[0][i]);  // another order of summation
    const double residual = std::abs(static_cast<double>(values[0][i] - unseen.targets[i]));
    const auto deviation = static_cast<double>(deviations[0][i]);
    squares += residual * residual;
    variance += deviation * deviation;
    coverage += residual < deviation ? 1 / 4000.0 : 0;
  }
  // The residuals and the moments come from 400 users each. Their standard errors are 1/sqrt(2 * 400) = 3.5% each, and
  // 5% together; the tolerance is 5 standard errors.
  EXPECT_NEAR(std::sqrt(variance / squares), 1, 0.25);
  EXPECT_NEAR(coverage, 0.68, 0.1);
  EXPECT_THROW(learner.predict(unseen.sparse(), values[0], deviations[0], std::vector<Index>(4000, -1)),
               std::invalid_argument);
  EXPECT_THROW(learner.predict(unseen.sparse(), values[0], deviations[0], std::vector<Index>(3)),
               std::invalid_argument);
}

TEST(Learner, PredictsZeroBeforeTheFirstRow) {
  LearnerOptions options;
  options.shape.dim = 3;
  options.shape.rank = 1;
  Learner<double> learner(options);
  const auto rows = random_rows<double>(2, 3, 1);
  std::vector<double> predictions(2);
  learner.predict(rows.dense(), predictions);
  EXPECT_EQ(predictions, (std::vector<double>{0, 0}));
  EXPECT_EQ(learner.model().dim(), 3);
}

TEST(Learner, GrowKeepsPredictions) {
  const auto rows = planted_rows(random_model<double>(4, 1, 1), 3000, 0.01);
  LearnerOptions options;
  options.shape.dim = 4;
  options.shape.rank = 1;
  Learner<double> learner(options);
  learner.learn(rows.sparse());
  learner.grow(6);
  RowMajorMatrix<double> wide = RowMajorMatrix<double>::Zero(100, 6);
  wide.leftCols(4) = rows.X.topRows(100);
  std::vector<double> predictions(100);
  learner.predict(OwnedRows<double>(wide, std::vector<double>(100)).sparse(), predictions);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(predictions[i], rows.targets[i], 0.1);
  EXPECT_THROW(learner.grow(5), std::invalid_argument);
}

TEST(Learner, PredictionsStayInTheRange) {
  auto rows = planted_rows(random_model<double>(4, 1, 1), 3000, 0.1);
  for (double& y : rows.targets) y = std::clamp(y, -2.0, 2.0);
  LearnerOptions options;
  options.shape.dim = 4;
  options.shape.rank = 1;
  options.range = {-2.0, 2.0};
  Learner<double> censored(options);
  std::vector<double> with(3000);
  censored.learn(rows.dense(), with);
  options.range.reset();
  Learner<double> plain(options);
  std::vector<double> without(3000);
  plain.learn(rows.dense(), without);
  double squares[2] = {0, 0};
  for (std::size_t i = 0; i < 3000; ++i) {
    EXPECT_LE(std::abs(with[i]), 2);
    if (i < 1500) continue;
    squares[0] += std::pow(with[i] - rows.targets[i], 2);
    squares[1] += std::pow(std::clamp(without[i], -2.0, 2.0) - rows.targets[i], 2);
  }
  EXPECT_LT(squares[0], 0.8 * squares[1]);
}

/// Learns `before` rows, restores a copy from bytes, and compares both after learning the other rows.
template <typename Scalar>
void expect_copy_learns_the_same(const Rows<Scalar>& rows, Index before, LearnerOptions options) {
  Learner<Scalar> learner(options);
  learner.learn(rows.slice(0, before));
  Learner<Scalar> copy = Learner<Scalar>::from_bytes(learner.to_bytes());
  EXPECT_EQ(copy.rows(), before);
  std::vector<Scalar> values[2] = {std::vector<Scalar>(100), std::vector<Scalar>(100)};
  std::vector<Scalar> deviations[2] = {std::vector<Scalar>(100), std::vector<Scalar>(100)};
  const Rows<Scalar> rest = rows.slice(before, rows.count() - before - 100);
  const Rows<Scalar> fresh = rows.slice(rows.count() - 100, 100);
  Learner<Scalar>* const both[2] = {&learner, &copy};
  for (int i = 0; i < 2; ++i) {
    both[i]->learn(rest);
    both[i]->predict(fresh, values[i], deviations[i]);
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(deviations[0], deviations[1]);
  EXPECT_EQ(learner.noise(), copy.noise());
  EXPECT_EQ(learner.to_bytes(), copy.to_bytes());
}

TYPED_TEST(LearnerTest, CopyFromBytesGivesTheSameResults) {
  const auto rows = planted_rows(random_model<TypeParam>(6, 2, 1), 1500, 0.1);
  LearnerOptions options;
  options.shape.dim = 6;
  options.shape.rank = 2;
  options.half_life = 500;
  options.seed = ~std::uint64_t{0};
  for (const Index before : {0, 7, 49, 50, 777}) {
    expect_copy_learns_the_same(rows.dense(), before, options);
    expect_copy_learns_the_same(rows.sparse(), before, options);
  }
  options.range = {-3.0, 3.0};
  options.memory = 1e6;
  expect_copy_learns_the_same(rows.dense(), 100, options);
}

TEST(Learner, CopyFromBytesKeepsTheEvidence) {
  // The class depends weakly on the features, so that the evidence is sufficient only after many rows.
  auto rows = random_rows<double>(1500, 4, 1);
  Random random(5, 0);
  for (std::size_t i = 0; i < 1500; ++i)
    rows.targets[i] = random.uniform() < logistic(0.5 * rows.X(static_cast<Index>(i), 0)) ? 1 : -1;
  LearnerOptions options;
  options.shape.dim = 4;
  options.shape.rank = 1;
  options.task = Task::classification;
  for (const Index before : {0, 7, 50, 60, 300, 1000}) expect_copy_learns_the_same(rows.dense(), before, options);
}

TEST(Learner, RejectsDamagedBytes) {
  const auto rows = planted_rows(random_model<double>(4, 1, 1), 60, 0.1);
  LearnerOptions options;
  options.shape.dim = 4;
  options.shape.rank = 1;
  Learner<double> learner(options);
  learner.learn(rows.dense());
  const std::string bytes = learner.to_bytes();
  for (std::size_t length = 0; length < bytes.size(); length += 101)
    EXPECT_THROW((void)Learner<double>::from_bytes(bytes.substr(0, length)), DataError) << length;
  EXPECT_THROW((void)Learner<float>::from_bytes(bytes), DataError);
  for (const char* array : {"options.rank", "stream.race.contenders", "has_started"}) {
    std::string other = bytes;
    const std::size_t position = other.find(std::string("\"") + array + "\"");
    ASSERT_NE(position, std::string::npos) << array;
    other[position + 1] = 'x';
    EXPECT_THROW((void)Learner<double>::from_bytes(other), DataError) << array;
  }
}

TEST(Learner, RejectsValuesThatOverflow) {
  LearnerOptions options;
  options.shape.dim = 2;
  options.shape.rank = 1;
  Learner<double> learner(options);
  std::vector<double> prediction(1);
  for (const double wrong : {1e300, double(INFINITY), double(NAN)}) {
    const std::vector<double> features{1, wrong};
    const std::vector<double> valid{1, 1};
    const std::vector<double> target{wrong};
    const std::vector<double> zero{0};
    EXPECT_THROW(learner.learn(Rows<double>::dense(features, 2, zero)), std::invalid_argument);
    EXPECT_THROW(learner.learn(Rows<double>::dense(valid, 2, target)), std::invalid_argument);
    EXPECT_THROW(learner.predict(Rows<double>::dense(features, 2), prediction), std::invalid_argument);
  }
  EXPECT_EQ(learner.rows(), 0);
}

TEST(Learner, RejectsInvalidArguments) {
  const auto expect_rejected = [](auto&& change) {
    LearnerOptions options;
    options.shape.dim = 5;
    options.shape.rank = 2;
    change(options);
    EXPECT_THROW(Learner<double>{options}, std::invalid_argument);
  };
  expect_rejected([](LearnerOptions& o) { o.shape.dim = 0; });
  expect_rejected([](LearnerOptions& o) { o.shape.rank = 6; });
  expect_rejected([](LearnerOptions& o) { o.shape.left_dim = 1; });
  expect_rejected([](LearnerOptions& o) { o.shape.linear = false; });
  expect_rejected([](LearnerOptions& o) { o.half_life = -1; });
  expect_rejected([](LearnerOptions& o) { o.range = {1.0, 1.0}; });
  LearnerOptions options;
  options.shape.dim = 5;
  options.shape.rank = 2;
  Learner<double> learner(options);
  auto rows = random_rows<double>(3, 4, 1);
  EXPECT_THROW(learner.learn(rows.dense()), std::invalid_argument);
  rows = random_rows<double>(3, 5, 1);
  rows.X(1, 1) = NAN;
  EXPECT_THROW(learner.learn(rows.dense()), std::invalid_argument);
  EXPECT_EQ(learner.rows(), 0);
}

}  // namespace
}  // namespace dyad
