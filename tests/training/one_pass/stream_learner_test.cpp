#include "training/one_pass/stream_learner.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::OwnedRows;
using test::random_model;
using test::random_rows;

OwnedRows<double> planted_rows(const Model<double>& truth, Index count, double noise, std::uint64_t seed,
                               double density = 1) {
  auto rows = random_rows<double>(count, truth.dim(), seed, density);
  const Vector<double> f = test::brute_force_predictions(truth, rows.X);
  Random random(seed, 9);
  for (Index i = 0; i < count; ++i) rows.targets[static_cast<std::size_t>(i)] = f[i] + noise * random.normal();
  return rows;
}

StreamOptions stream_options_for(Index dim, Index rank, double memory) {
  StreamOptions options;
  options.kalman.shape.dim = dim;
  options.kalman.shape.rank = rank;
  MomentOptions moment;
  moment.shape.dim = dim;
  moment.shape.rank = rank;
  moment.shape.intercept = true;
  moment.threads = 1;
  options.moment = moment;
  options.buffered_start.memory = memory;
  return options;
}

std::vector<double> learn(StreamLearner<double>& learner, const Rows<double>& rows, Index chunk) {
  std::vector<double> predictions(static_cast<std::size_t>(rows.count()));
  for (Index first = 0; first < rows.count(); first += chunk) {
    const Index count = std::min(chunk, rows.count() - first);
    learner.learn(rows.slice(first, count),
                  std::span(predictions).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  }
  return predictions;
}

double mean_square(const std::vector<double>& predictions, const std::vector<double>& targets, std::size_t from) {
  double sum = 0;
  for (std::size_t i = from; i < targets.size(); ++i) sum += std::pow(predictions[i] - targets[i], 2);
  return sum / static_cast<double>(targets.size() - from);
}

TEST(BufferedStart, RestoresTheScaleOfRowsAfterAnException) {
  const Model<double> truth = random_model<double>(6, 2, 1);
  auto rows = planted_rows(truth, 100, 0, 2);
  rows.X *= 1024;
  FeatureScales scales(6, false);
  (void)scales.add_new_features(rows.dense());
  ThreadPool pool(1);
  bool is_throwing = true;
  BufferedStartOptions options;
  options.memory = 1e9;
  options.interrupted = [&]() -> bool { return is_throwing ? throw std::runtime_error("stop") : false; };
  BufferedStart<double> buffered(options, pool);
  const StreamOptions stream = stream_options_for(6, 2, 1e9);
  buffered.start(stream.kalman, false);
  EXPECT_THROW((void)buffered.append(rows.dense(), Prior(), scales), std::runtime_error);
  is_throwing = false;
  const auto start = buffered.finish(Prior(), scales);
  ASSERT_TRUE(start);
  EXPECT_TRUE(start->is_exact);
  std::vector<double> predictions(100);
  start->filter.model().predict(rows.dense(), predictions);
  EXPECT_LT(mean_square(predictions, rows.targets, 0), 1e-12);
}

TEST(StreamLearner, BufferedRowsGiveTheExactModel) {
  const Model<double> truth = random_model<double>(20, 2, 1);
  const auto rows = planted_rows(truth, 400, 0, 2);
  StreamLearner<double> learner(stream_options_for(20, 2, 1e9), test::pool());
  const auto predictions = learn(learner, rows.dense(), 400);
  EXPECT_LT(mean_square(predictions, rows.targets, 250), 1e-20);
  EXPECT_NE(learner.origin().find("fits exactly"), std::string::npos) << learner.origin();
}

TEST(StreamLearner, IsInvariantToChunksAfterTheStart) {
  const auto rows = planted_rows(random_model<double>(8, 2, 1), 3000, 0.2, 2);
  for (const double memory : {0.0, 1e9}) {
    StreamLearner<double> whole(stream_options_for(8, 2, memory), test::pool());
    StreamLearner<double> chunked(stream_options_for(8, 2, memory), test::pool());
    whole.start(rows.dense().slice(0, 500));
    chunked.start(rows.dense().slice(0, 500));
    const auto expected = learn(whole, rows.dense(), 3000);
    const auto got = learn(chunked, rows.dense(), 77);
    // The sums of the moment solver are rounded per chunk.
    for (std::size_t i = 0; i < 3000; ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);
  }
}

TEST(StreamLearner, IsInvariantToThreadsWithoutMoments) {
  const auto rows = planted_rows(random_model<double>(30, 2, 1), 3000, 0.2, 2, 0.1);
  std::vector<std::vector<double>> predictions;
  for (const int threads : {1, 2, 3}) {
    StreamOptions options = stream_options_for(30, 2, 0);
    options.moment.reset();
    ThreadPool pool(threads);
    StreamLearner<double> learner(options, pool);
    predictions.push_back(learn(learner, rows.sparse(), 1000));
  }
  EXPECT_EQ(predictions[0], predictions[1]);
  EXPECT_EQ(predictions[0], predictions[2]);
}

TEST(StreamLearner, ContinuesFromItsArchiveBitIdentically) {
  const auto rows = planted_rows(random_model<double>(10, 2, 1), 6000, 0.2, 2);
  StreamOptions options = stream_options_for(10, 2, 1e9);
  StreamLearner<double> learner(options, test::pool());
  learn(learner, rows.dense().slice(0, 3000), 500);
  learner.finish_buffered_start();
  Archive saved;
  learner.archive(saved);
  StreamLearner<double> other(options, test::pool());
  Archive loaded(saved.arrays());
  other.archive(loaded);
  EXPECT_EQ(learn(learner, rows.dense().slice(3000, 3000), 500), learn(other, rows.dense().slice(3000, 3000), 700));
  EXPECT_EQ(learner.model().factors, other.model().factors);
}

// The filters start with equal numbers of negative and positive factors, but all true factors are positive.
TEST(StreamLearner, CorrectsSignsWithoutMoments) {
  Model<double> truth = random_model<double>(12, 4, 1);
  truth.spectrum = {1, 1, 1, 1};
  const auto rows = planted_rows(truth, 60000, 0.1, 2);
  StreamOptions options = stream_options_for(12, 4, 0);
  options.moment.reset();
  StreamLearner<double> learner(options, test::pool());
  const auto predictions = learn(learner, rows.dense(), 5000);
  EXPECT_LT(mean_square(predictions, rows.targets, 50000), 0.02) << learner.origin();
}

// The weakest eigenvalue is 1/1000 of the largest one.
TEST(StreamLearner, ProbeFindsWeakDirections) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Model<double> truth = random_model<double>(30, 3, seed);
    truth.spectrum = {1, -0.5, 0.001};
    const auto rows = planted_rows(truth, 30000, 0.0001, seed + 10);
    StreamOptions options = stream_options_for(30, 3, 0);
    options.features_are_independent = true;
    options.learns_prior = false;
    options.fixed_priors = {{0.5, 0.01}};
    StreamLearner<double> learner(options, test::pool());
    const auto predictions = learn(learner, rows.dense(), 5000);
    EXPECT_LT(mean_square(predictions, rows.targets, 25000), 1.1e-8) << seed << ": " << learner.origin();
  }
}

TEST(StreamLearner, ArchiveContainsTheProbe) {
  Model<double> truth = random_model<double>(10, 2, 1);
  truth.spectrum = {1, -0.01};
  const auto rows = planted_rows(truth, 4000, 0.001, 2);
  StreamOptions options = stream_options_for(10, 2, 0);
  options.features_are_independent = true;
  ThreadPool pool(1);
  StreamLearner<double> learner(options, pool);
  learn(learner, rows.dense().slice(0, 1010), 500);
  Archive saved;
  learner.archive(saved);
  EXPECT_TRUE(saved.has("probe.rows"));
  StreamLearner<double> resumed(options, pool);
  Archive loaded(saved.arrays());
  resumed.archive(loaded);
  // Equal chunks, because the sums of the probe are rounded per chunk.
  EXPECT_EQ(learn(learner, rows.dense().slice(1010, 2990), 500), learn(resumed, rows.dense().slice(1010, 2990), 500));

  auto arrays = saved.take();
  std::erase_if(arrays, [](const auto& array) { return array.first.starts_with("probe."); });
  Archive without_probe(std::move(arrays));
  StreamLearner<double> old(options, pool);
  EXPECT_NO_THROW(old.archive(without_probe));
}

TEST(StreamLearner, MomentsRecoverMissedDirections) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Model<double> truth = random_model<double>(30, 3, seed);
    truth.spectrum = {1, -0.6, 0.3};
    const auto rows = planted_rows(truth, 40000, 0.05, seed + 10);
    StreamOptions options = stream_options_for(30, 3, 0);
    options.features_are_independent = true;
    options.learns_prior = false;
    options.fixed_priors = {{0.5, 0.01}};
    StreamLearner<double> learner(options, test::pool());
    const auto predictions = learn(learner, rows.dense(), 5000);
    EXPECT_LT(mean_square(predictions, rows.targets, 35000), 0.0035) << seed << ": " << learner.origin();
  }
}

TEST(StreamLearner, EstimatesFeatureScales) {
  const auto plain = planted_rows(random_model<double>(6, 2, 1), 4000, 0.1, 2);
  RowMajorMatrix<double> X = plain.X;
  for (Index j = 0; j < 6; ++j) X.col(j) *= std::pow(10.0, 2 * static_cast<double>(j) - 6);
  StreamOptions options = stream_options_for(6, 2, 1e9);
  options.features_are_standardized = false;
  StreamLearner<double> learner(options, test::pool());
  const auto predictions = learn(learner, OwnedRows<double>(X, plain.targets).dense(), 1000);
  EXPECT_LT(mean_square(predictions, plain.targets, 3000), 0.012) << learner.origin();
}

TEST(StreamLearner, PureNoiseIsPredictedByItsMean) {
  const auto rows = random_rows<double>(5000, 10, 1);
  StreamLearner<double> learner(stream_options_for(10, 4, 1e9), test::pool());
  const auto predictions = learn(learner, rows.dense(), 1000);
  EXPECT_LT(mean_square(predictions, rows.targets, 2500),
            1.01 * mean_square(std::vector<double>(5000, 0), rows.targets, 2500));
}

TEST(StreamLearner, LearnsFeaturesAddedByGrow) {
  const Model<double> truth = random_model<double>(9, 1, 1);
  const auto rows = planted_rows(truth, 4000, 0.1, 2, 0.5);
  StreamOptions options = stream_options_for(5, 1, 1e9);
  options.kalman.shape.diagonal = Diagonal::tied;
  StreamLearner<double> learner(options, test::pool());
  const OwnedRows<double> narrow(rows.X.topRows(1000).leftCols(5), {rows.targets.begin(), rows.targets.begin() + 1000});
  learn(learner, narrow.sparse(), 500);
  learner.grow(9, 0);
  const auto predictions = learn(learner, rows.sparse(), 500);
  EXPECT_LT(mean_square(predictions, rows.targets, 3000), 0.02);
}

}  // namespace
}  // namespace dyad
