#include "training/multi_pass/refine.h"

#include <cmath>
#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support.h"
#include "training/multi_pass/held_out_folds.h"

namespace dyad {
namespace {

/// Dense rows of a model with noise 0.5, and what one pass makes of them.
struct Learned {
  test::OwnedRows<double> rows;
  Model<double> truth;
  RowCache<double> kept;
  std::unique_ptr<StreamLearner<double>> one_pass;
};

StreamOptions shape_for(Index dim, bool standardised) {
  StreamOptions options;
  options.kalman.shape.dim = dim;
  options.kalman.shape.rank = 4;  // of each sign as many as the truth can have
  options.kalman.shape.diagonal = Diagonal::free;
  options.standardised = standardised;
  return options;
}

Learned learned(Index count, Index dim, std::uint64_t seed, double feature_scale = 1, bool with_moments = false) {
  auto rows = test::random_rows<double>(count, dim, seed);
  const Model<double> truth = test::random_model<double>(dim, 2, seed + 100);
  const Vector<double> f = test::brute_force_predictions(truth, rows.X);
  for (std::size_t i = 0; i < rows.targets.size(); ++i)
    rows.targets[i] = f[static_cast<Index>(i)] + 0.5 * rows.targets[i];
  rows.X *= feature_scale;
  Learned result{std::move(rows), truth, {}, {}};
  StreamOptions options = shape_for(dim, false);
  if (with_moments) {
    options.moment.emplace();
    options.moment->shape.dim = dim;
    options.moment->shape.rank = options.kalman.shape.rank;
    options.moment->threads = 1;
  }
  result.one_pass = std::make_unique<StreamLearner<double>>(std::move(options), test::pool());
  std::vector<double> predictions(static_cast<std::size_t>(count));
  result.one_pass->learn(result.rows.dense(), predictions);
  result.kept.append(result.rows.dense());
  return result;
}

RefineOptions refine_shape(Solver solver) {
  RefineOptions options;
  options.solver = solver;
  options.loss = [](double y, double f) { return (y - f) * (y - f); };
  return options;
}

/// Distance from the truth, on fresh rows without noise.
double error_of(const KalmanFilter<double>& filter, const Model<double>& truth, double feature_scale = 1) {
  auto fresh = test::random_rows<double>(500, truth.dim(), 77);
  const Vector<double> expected = test::brute_force_predictions(truth, fresh.X);
  fresh.X *= feature_scale;
  std::vector<double> f(500);
  filter.model().predict(fresh.dense(), f);
  return (as_vector(f) - expected).norm() / std::sqrt(500);
}

TEST(Refine, MakesMoreOfTheRowsThanOnePass) {
  ThreadPool pool(2);
  for (const Solver solver : {Solver::newton, Solver::variational})
    for (const Index count : {400, 6000}) {  // few rows are held out in turn, many once
      Learned data = learned(count, 6, 1);
      const RefineResult<double> result =
          refine<double>(*data.one_pass, data.kept, nullptr, refine_shape(solver), pool);
      ASSERT_TRUE(result.filter);
      EXPECT_GT(result.levels, 0);
      EXPECT_LE(result.refined, result.one_pass);
      EXPECT_LT(error_of(*result.filter, data.truth), error_of(data.one_pass->filter(), data.truth));
      EXPECT_NEAR(std::sqrt(result.filter->noise_variance()), 0.5, 0.05);
      EXPECT_NEAR(static_cast<double>(result.held_out_rows), count < 5000 ? 400 : 600, count < 5000 ? 0 : 80);
    }
}

TEST(Refine, TheScaleOfFeaturesDoesNotMatter) {
  ThreadPool pool(1);
  for (const Solver solver : {Solver::newton, Solver::variational}) {
    Learned small = learned(1000, 5, 2);
    Learned large = learned(1000, 5, 2, 1024);
    const auto of_small = refine<double>(*small.one_pass, small.kept, nullptr, refine_shape(solver), pool);
    const auto of_large = refine<double>(*large.one_pass, large.kept, nullptr, refine_shape(solver), pool);
    ASSERT_TRUE(of_small.filter && of_large.filter);
    EXPECT_NEAR(error_of(*of_small.filter, small.truth), error_of(*of_large.filter, large.truth, 1024), 1e-6);
    EXPECT_NEAR(large.kept.view(5).row(3)[2], large.rows.X(3, 2), 1e-9);  // the rows are as they were
  }
}

TEST(Refine, AnExceptionLeavesTheRowsInTheirUnits) {
  ThreadPool pool(1);
  Learned data = learned(300, 5, 2, 1024);
  RefineOptions options = refine_shape(Solver::newton);
  options.progress = [](const RefineStep&) { throw std::runtime_error("stop"); };
  EXPECT_THROW((void)refine<double>(*data.one_pass, data.kept, nullptr, options, pool), std::runtime_error);
  EXPECT_NEAR(data.kept.view(5).row(3)[2], data.rows.X(3, 2), 1e-9);
}

TEST(Refine, DeclinesWhereOnePassIsBetterUnlessAskedFor) {
  ThreadPool pool(1);
  Learned data = learned(200, 3, 3);
  RefineOptions options = refine_shape(Solver::newton);
  options.loss = [](double, double f) { return std::abs(f) < 1e9 ? 1.0 : 2.0; };  // nothing ever improves
  EXPECT_FALSE(refine<double>(*data.one_pass, data.kept, nullptr, options, pool).filter);
  options.may_decline = false;
  EXPECT_TRUE(refine<double>(*data.one_pass, data.kept, nullptr, options, pool).filter);
}

TEST(Refine, ValidationRowsSayHowFarToGo) {
  ThreadPool pool(1);
  Learned data = learned(300, 5, 4);
  Learned other = learned(2000, 5, 4);  // the same truth, other rows
  RowCache<double> validation;
  validation.append(other.rows.dense().slice(300, 1700));
  Index steps = 0;
  RefineOptions options = refine_shape(Solver::newton);
  options.progress = [&](const RefineStep& step) {
    ++steps;
    EXPECT_FALSE(step.is_refit);  // all rows count from the start
  };
  const auto result = refine<double>(*data.one_pass, data.kept, &validation, options, pool);
  ASSERT_TRUE(result.filter);
  EXPECT_EQ(result.held_out_rows, 1700);
  EXPECT_GT(steps, result.levels);
  std::vector<double> f(1700);
  result.filter->model().predict(other.rows.dense().slice(300, 1700), f);
  double squares = 0;
  for (std::size_t i = 0; i < f.size(); ++i) squares += std::pow(f[i] - other.rows.targets[i + 300], 2) / 1700;
  EXPECT_NEAR(squares, result.refined, 1e-9);
}

TEST(Refine, TakesExactlyTheLevelsThatAreAskedFor) {
  ThreadPool pool(1);
  for (const Solver solver : {Solver::newton, Solver::variational}) {
    Learned data = learned(300, 5, 5);
    RefineOptions options = refine_shape(solver);
    options.levels = 3;
    const auto result = refine<double>(*data.one_pass, data.kept, nullptr, options, pool);
    ASSERT_TRUE(result.filter);
    EXPECT_EQ(result.levels, 3);
    EXPECT_EQ(result.held_out_rows, 0);
  }
}

TEST(Refine, AnInterruptionLeavesOnePass) {
  ThreadPool pool(1);
  for (const Solver solver : {Solver::newton, Solver::variational})
    for (const auto& [after, with_moments] : {std::pair{0, false}, {0, true}, {3, false}, {3, true}, {20, false}}) {
      Learned data = learned(300, 5, 6, 1, with_moments);
      RefineOptions options = refine_shape(solver);
      int asked = 0;
      options.interrupted = [&, most = after] { return asked++ >= most; };
      const auto result = refine<double>(*data.one_pass, data.kept, nullptr, options, pool);
      EXPECT_TRUE(result.interrupted);
      EXPECT_FALSE(result.filter);
    }
}

/// Steps of few rows with many features are interrupted on the way, too.
TEST(Refine, AnInterruptionOfWideRowsLeavesOnePass) {
  ThreadPool pool(1);
  for (const int after : {0, 5, 50, 500}) {
    Learned data = learned(20, 300, 8);
    RefineOptions options = refine_shape(Solver::newton);
    int asked = 0;
    options.interrupted = [&] { return asked++ >= after; };
    const auto result = refine<double>(*data.one_pass, data.kept, nullptr, options, pool);
    EXPECT_TRUE(result.interrupted);
    EXPECT_FALSE(result.filter);
    EXPECT_LE(asked, after + 40);  // each part of the work asks once more, and begins nothing else
  }
}

TEST(HeldOutFolds, HoldEveryRowOutOnceBelow5000Rows) {
  ThreadPool pool(1);
  for (const bool by_hash : {false, true}) {
    Learned data = learned(300, 3, 9);
    data.kept.append(data.rows.dense());  // every row twice
    RefineOptions options = refine_shape(Solver::newton);
    options.exact_weights = by_hash;
    const RefineContext<double> context{*data.one_pass, data.kept, options, pool};
    HeldOutFolds<double> folds(context, context.view(data.kept), std::vector<double>(3, 1.0));
    EXPECT_EQ(folds.count(), 5);
    EXPECT_EQ(folds.evaluate().rows, 600);
    EXPECT_EQ(folds.evaluate().weight, 600);
  }
}

/// Folds by hash need a row each.
TEST(HeldOutFolds, AreEmptyIfAllRowsAreEqual) {
  ThreadPool pool(1);
  Learned data = learned(20, 3, 9);
  RowCache<double> equal;
  for (int i = 0; i < 20; ++i) equal.append(data.rows.dense().slice(0, 1));
  RefineOptions options = refine_shape(Solver::newton);
  options.exact_weights = true;
  const RefineContext<double> context{*data.one_pass, equal, options, pool};
  EXPECT_TRUE(HeldOutFolds<double>(context, context.view(equal), std::vector<double>(3, 1.0)).empty());
}

TEST(Refine, TooFewRowsAreLeftAlone) {
  ThreadPool pool(1);
  Learned data = learned(9, 2, 7);
  EXPECT_FALSE(refine<double>(*data.one_pass, data.kept, nullptr, refine_shape(Solver::newton), pool).filter);
}

}  // namespace
}  // namespace dyad
