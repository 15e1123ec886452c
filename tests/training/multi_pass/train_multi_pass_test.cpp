#include "training/multi_pass/train_multi_pass.h"

#include <cmath>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support.h"
#include "training/multi_pass/held_out_folds.h"

namespace dyad {
namespace {

/// Dense rows of a model with noise of standard deviation 0.5, and a learner after one pass over them.
struct LearnedRows {
  test::OwnedRows<double> rows;
  Model<double> truth;
  RowCache<double> cache;
  std::unique_ptr<StreamLearner<double>> one_pass;
};

StreamOptions stream_options_for(Index dim, bool features_are_standardized) {
  StreamOptions options;
  options.kalman.shape.dim = dim;
  options.kalman.shape.rank = 4;  // two factors of each sign; the true model has two factors of any sign
  options.kalman.shape.diagonal = Diagonal::free;
  options.features_are_standardized = features_are_standardized;
  return options;
}

LearnedRows learn_rows(Index count, Index dim, std::uint64_t seed, double feature_scale = 1,
                       bool with_moments = false) {
  auto rows = test::random_rows<double>(count, dim, seed);
  const Model<double> truth = test::random_model<double>(dim, 2, seed + 100);
  const Vector<double> f = test::brute_force_predictions(truth, rows.X);
  for (std::size_t i = 0; i < rows.targets.size(); ++i)
    rows.targets[i] = f[static_cast<Index>(i)] + 0.5 * rows.targets[i];
  rows.X *= feature_scale;
  LearnedRows result{std::move(rows), truth, {}, {}};
  StreamOptions options = stream_options_for(dim, false);
  if (with_moments) {
    options.moment.emplace();
    options.moment->shape.dim = dim;
    options.moment->shape.rank = options.kalman.shape.rank;
    options.moment->threads = 1;
  }
  result.one_pass = std::make_unique<StreamLearner<double>>(std::move(options), test::pool());
  std::vector<double> predictions(static_cast<std::size_t>(count));
  result.one_pass->learn(result.rows.dense(), predictions);
  result.cache.append(result.rows.dense());
  return result;
}

MultiPassOptions multi_pass_options_for(Solver solver) {
  MultiPassOptions options;
  options.solver = solver;
  options.loss = [](double y, double f) { return (y - f) * (y - f); };
  return options;
}

/// Root mean squared error of the predictions on fresh rows without noise.
double prediction_error(const KalmanFilter<double>& filter, const Model<double>& truth, double feature_scale = 1) {
  auto fresh = test::random_rows<double>(500, truth.dim(), 77);
  const Vector<double> expected = test::brute_force_predictions(truth, fresh.X);
  fresh.X *= feature_scale;
  std::vector<double> f(500);
  filter.model().predict(fresh.dense(), f);
  return (as_vector(f) - expected).norm() / std::sqrt(500);
}

TEST(TrainMultiPass, ReducesTheErrorOfOnePass) {
  ThreadPool pool(2);
  for (const Solver solver : {Solver::newton, Solver::variational})
    for (const Index count : {400, 6000}) {  // five folds below 5,000 rows, else one
      LearnedRows data = learn_rows(count, 6, 1);
      const MultiPassResult<double> result =
          train_multi_pass<double>(*data.one_pass, data.cache, nullptr, multi_pass_options_for(solver), pool);
      ASSERT_TRUE(result.filter);
      EXPECT_GT(result.levels, 0);
      EXPECT_LE(result.multi_pass, result.one_pass);
      EXPECT_LT(prediction_error(*result.filter, data.truth), prediction_error(data.one_pass->filter(), data.truth));
      EXPECT_NEAR(std::sqrt(result.filter->noise_variance()), 0.5, 0.05);
      EXPECT_NEAR(static_cast<double>(result.held_out_rows), count < 5000 ? 400 : 600, count < 5000 ? 0 : 80);
    }
}

TEST(TrainMultiPass, IsInvariantToFeatureScales) {
  ThreadPool pool(1);
  for (const Solver solver : {Solver::newton, Solver::variational}) {
    LearnedRows small = learn_rows(1000, 5, 2);
    LearnedRows large = learn_rows(1000, 5, 2, 1024);
    const auto small_result =
        train_multi_pass<double>(*small.one_pass, small.cache, nullptr, multi_pass_options_for(solver), pool);
    const auto large_result =
        train_multi_pass<double>(*large.one_pass, large.cache, nullptr, multi_pass_options_for(solver), pool);
    ASSERT_TRUE(small_result.filter && large_result.filter);
    EXPECT_NEAR(prediction_error(*small_result.filter, small.truth),
                prediction_error(*large_result.filter, large.truth, 1024), 1e-6);
    EXPECT_NEAR(large.cache.view(5).row(3)[2], large.rows.X(3, 2), 1e-9);  // the values are restored
  }
}

TEST(TrainMultiPass, RestoresTheScaleOfRowsAfterAnException) {
  ThreadPool pool(1);
  LearnedRows data = learn_rows(300, 5, 2, 1024);
  MultiPassOptions options = multi_pass_options_for(Solver::newton);
  options.progress = [](const MultiPassStep&) { throw std::runtime_error("stop"); };
  EXPECT_THROW((void)train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool), std::runtime_error);
  EXPECT_NEAR(data.cache.view(5).row(3)[2], data.rows.X(3, 2), 1e-9);
}

TEST(TrainMultiPass, SelectsOnePassOnlyIfAllowed) {
  ThreadPool pool(1);
  LearnedRows data = learn_rows(200, 3, 3);
  MultiPassOptions options = multi_pass_options_for(Solver::newton);
  options.loss = [](double, double f) { return std::abs(f) < 1e9 ? 1.0 : 2.0; };  // no level has a smaller loss
  EXPECT_FALSE(train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool).filter);
  options.can_select_one_pass = false;
  EXPECT_TRUE(train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool).filter);
}

TEST(TrainMultiPass, SelectsTheLevelOnValidationRows) {
  ThreadPool pool(1);
  LearnedRows data = learn_rows(300, 5, 4);
  LearnedRows other = learn_rows(2000, 5, 4);  // more rows of the same model
  RowCache<double> validation;
  validation.append(other.rows.dense().slice(300, 1700));
  Index steps = 0;
  MultiPassOptions options = multi_pass_options_for(Solver::newton);
  options.progress = [&](const MultiPassStep& step) {
    ++steps;
    EXPECT_FALSE(step.is_refit);  // the fit at the selected level is the result
  };
  const auto result = train_multi_pass<double>(*data.one_pass, data.cache, &validation, options, pool);
  ASSERT_TRUE(result.filter);
  EXPECT_EQ(result.held_out_rows, 1700);
  EXPECT_GT(steps, result.levels);
  std::vector<double> f(1700);
  result.filter->model().predict(other.rows.dense().slice(300, 1700), f);
  double squares = 0;
  for (std::size_t i = 0; i < f.size(); ++i) squares += std::pow(f[i] - other.rows.targets[i + 300], 2) / 1700;
  EXPECT_NEAR(squares, result.multi_pass, 1e-9);
}

TEST(TrainMultiPass, FitsAFixedNumberOfLevels) {
  ThreadPool pool(1);
  for (const Solver solver : {Solver::newton, Solver::variational}) {
    LearnedRows data = learn_rows(300, 5, 5);
    MultiPassOptions options = multi_pass_options_for(solver);
    options.levels = 3;
    const auto result = train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool);
    ASSERT_TRUE(result.filter);
    EXPECT_EQ(result.levels, 3);
    EXPECT_EQ(result.held_out_rows, 0);
  }
}

TEST(TrainMultiPass, InterruptionReturnsNoFilter) {
  ThreadPool pool(1);
  for (const Solver solver : {Solver::newton, Solver::variational})
    for (const auto& [after, with_moments] : {std::pair{0, false}, {0, true}, {3, false}, {3, true}, {20, false}}) {
      LearnedRows data = learn_rows(300, 5, 6, 1, with_moments);
      MultiPassOptions options = multi_pass_options_for(solver);
      int checks = 0;
      options.interrupted = [&, limit = after] { return checks++ >= limit; };
      const auto result = train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool);
      EXPECT_TRUE(result.interrupted);
      EXPECT_FALSE(result.filter);
    }
}

/// Few rows with many features use the dual solver, whose steps check for interruptions as well.
TEST(TrainMultiPass, InterruptionOfWideRowsReturnsNoFilter) {
  ThreadPool pool(1);
  for (const int after : {0, 5, 50, 500}) {
    LearnedRows data = learn_rows(20, 300, 8);
    MultiPassOptions options = multi_pass_options_for(Solver::newton);
    int checks = 0;
    options.interrupted = [&] { return checks++ >= after; };
    const auto result = train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool);
    EXPECT_TRUE(result.interrupted);
    EXPECT_FALSE(result.filter);
    EXPECT_LE(checks, after + 40);  // each component checks once more and ends
  }
}

/// Rows of two columns of categories, from a model with factors, and a learner after one pass over them.
struct LearnedCategories {
  test::OwnedRows<double> rows;
  RowCache<double> cache;
  std::unique_ptr<StreamLearner<double>> one_pass;
};

LearnedCategories learn_categories(Index count, std::uint64_t seed, bool is_classification = false) {
  constexpr Index levels = 20;
  Random random(seed, 0);
  const RowMajorMatrix<double> factors = random_normal<double>(random, 2 * levels, 2);
  RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(count, 2 * levels);
  std::vector<double> y;
  for (Index i = 0; i < count; ++i) {
    const auto left = static_cast<Index>(random.uniform() * levels);
    const auto right = levels + static_cast<Index>(random.uniform() * levels);
    X(i, left) = X(i, right) = 1;
    const double f = factors.row(left).dot(factors.row(right)) + 0.3 * random.normal();
    y.push_back(is_classification ? (f > 0 ? 1 : -1) : f);
  }
  LearnedCategories result{{std::move(X), std::move(y)}, {}, {}};
  StreamOptions options = stream_options_for(2 * levels, true);
  options.kalman.shape.diagonal = Diagonal::zero;
  if (is_classification) options.kalman.likelihood = make_likelihood(Task::classification);
  result.one_pass = std::make_unique<StreamLearner<double>>(std::move(options), test::pool());
  std::vector<double> predictions(static_cast<std::size_t>(count));
  result.one_pass->learn(result.rows.sparse(), predictions);
  result.cache.append(result.rows.sparse());
  return result;
}

MultiPassOptions sampling_options(bool is_classification = false) {
  MultiPassOptions options = multi_pass_options_for(Solver::sampling);
  options.discovers_groups = true;
  if (is_classification)
    options.loss = [](double y, double f) { return make_likelihood(Task::classification)->loss(y, f); };
  return options;
}

TEST(TrainMultiPass, SamplingReducesTheErrorOfOnePass) {
  ThreadPool pool(2);
  for (const bool is_classification : {false, true}) {
    LearnedCategories data = learn_categories(2000, 1, is_classification);
    const auto result =
        train_multi_pass<double>(*data.one_pass, data.cache, nullptr, sampling_options(is_classification), pool);
    ASSERT_TRUE(result.filter && result.sampled);
    EXPECT_LT(result.multi_pass, result.one_pass);
    EXPECT_GE(result.sampled->samples, 100);
    EXPECT_GT(result.levels, result.sampled->samples);
    EXPECT_NO_THROW(result.sampled->validate(result.filter->model()));
    if (!is_classification) {
      EXPECT_NEAR(std::exp(result.sampled->log_noise / 2), 0.3, 0.06);
    }
  }
}

TEST(TrainMultiPass, SamplingUsesTheRequestedNumberOfSamples) {
  ThreadPool pool(1);
  LearnedCategories data = learn_categories(800, 2);
  MultiPassOptions options = sampling_options();
  options.samples = 12;
  const auto result = train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool);
  ASSERT_TRUE(result.sampled);
  EXPECT_EQ(result.sampled->samples, 12);
}

/// An interruption returns the average of the samples so far, or no filter before the first sample.
TEST(TrainMultiPass, InterruptedSamplingReturnsTheAverageSoFar) {
  ThreadPool pool(1);
  for (const int after : {0, 5, 40, 60, 90}) {
    LearnedCategories data = learn_categories(800, 3);
    MultiPassOptions options = sampling_options();
    int checks = 0;
    options.interrupted = [&] { return checks++ >= after; };
    const auto result = train_multi_pass<double>(*data.one_pass, data.cache, nullptr, options, pool);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.filter.has_value(), after >= 40);
    EXPECT_EQ(result.sampled.has_value(), after >= 40);
  }
}

TEST(TrainMultiPass, SamplingOnValidationRowsReportsTheLossOfTheResult) {
  ThreadPool pool(1);
  LearnedCategories data = learn_categories(2000, 4);
  RowCache<double> validation;
  validation.append(data.rows.sparse().slice(0, 500));
  RowCache<double> training;
  training.append(data.rows.sparse().slice(500, 1500));
  MultiPassOptions options = sampling_options();
  options.can_select_one_pass = false;  // the pass has learned the validation rows
  const auto result = train_multi_pass<double>(*data.one_pass, training, &validation, options, pool);
  ASSERT_TRUE(result.filter);
  std::vector<double> f(500);
  result.filter->model().predict(data.rows.sparse().slice(0, 500), f);
  double squares = 0;
  for (std::size_t i = 0; i < f.size(); ++i) squares += std::pow(f[i] - data.rows.targets[i], 2) / 500;
  EXPECT_NEAR(squares, result.multi_pass, 1e-6);
  EXPECT_EQ(result.held_out_rows, 500);
}

TEST(HeldOutFolds, HoldsOutEveryRowOnceBelow5000Rows) {
  ThreadPool pool(1);
  for (const bool by_hash : {false, true}) {
    LearnedRows data = learn_rows(300, 3, 9);
    data.cache.append(data.rows.dense());  // every row twice
    MultiPassOptions options = multi_pass_options_for(Solver::newton);
    options.has_exact_weights = by_hash;
    const MultiPassContext<double> context{*data.one_pass, data.cache, options, pool};
    HeldOutFolds<double> folds(context, context.view(data.cache), std::vector<double>(3, 1.0));
    EXPECT_EQ(folds.count(), 5);
    EXPECT_EQ(folds.evaluate().rows, 600);
    EXPECT_EQ(folds.evaluate().weight, 600);
  }
}

/// Equal rows have the same hash, so that all but one fold would have no rows.
TEST(HeldOutFolds, IsEmptyIfAllRowsAreEqual) {
  ThreadPool pool(1);
  LearnedRows data = learn_rows(20, 3, 9);
  RowCache<double> equal;
  for (int i = 0; i < 20; ++i) equal.append(data.rows.dense().slice(0, 1));
  MultiPassOptions options = multi_pass_options_for(Solver::newton);
  options.has_exact_weights = true;
  const MultiPassContext<double> context{*data.one_pass, equal, options, pool};
  EXPECT_TRUE(HeldOutFolds<double>(context, context.view(equal), std::vector<double>(3, 1.0)).empty());
}

TEST(TrainMultiPass, ReturnsNoFilterBelowTenRows) {
  ThreadPool pool(1);
  LearnedRows data = learn_rows(9, 2, 7);
  EXPECT_FALSE(
      train_multi_pass<double>(*data.one_pass, data.cache, nullptr, multi_pass_options_for(Solver::newton), pool)
          .filter);
}

}  // namespace
}  // namespace dyad
