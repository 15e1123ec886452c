#include "solvers/moment/moment_learner.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

MomentOptions learner_options(Index dim, Index rank, Index left_dim = 0) {
  MomentOptions options;
  options.shape.dim = dim;
  options.shape.left_dim = left_dim;
  options.shape.rank = rank;
  options.shape.intercept = true;
  options.standardization = Standardization::center;
  options.threads = 2;
  return options;
}

/// Learns the rows in blocks.
template <typename Scalar>
void learn_in_blocks(MomentLearner<Scalar>& learner, const Rows<Scalar>& rows, Index block = 100) {
  std::vector<Scalar> residuals(static_cast<std::size_t>(block));
  for (Index first = 0; first < rows.count(); first += block) {
    const Rows<Scalar> slice = rows.slice(first, std::min(block, rows.count() - first));
    learner.learn(slice, std::span(residuals).first(static_cast<std::size_t>(slice.count())));
  }
}

template <typename Scalar>
double rms_error(const Model<Scalar>& model, const test::OwnedRows<Scalar>& rows) {
  std::vector<Scalar> predictions(rows.targets.size());
  model.predict(rows.dense(), predictions);
  return static_cast<double>((as_vector(predictions) - as_vector(rows.targets)).norm()) /
         std::sqrt(static_cast<double>(predictions.size()));
}

test::OwnedRows<double> planted_rows(Index count, const Model<double>& truth, std::uint64_t seed, double noise,
                                     double shift = 0, double scale = 1) {
  test::OwnedRows<double> rows = test::random_rows<double>(count, truth.dim(), seed);
  RowMajorMatrix<double> X = (rows.X.array() * scale + shift).matrix();
  const Vector<double> y = test::brute_force_predictions(truth, X) + noise * as_vector(rows.targets);
  return {X, std::vector<double>(y.data(), y.data() + y.size())};
}

TEST(MomentLearner, RecoversPlantedModelForAllMeansAndScales) {
  for (const auto& [shift, scale] : {std::pair{0.0, 1.0}, {2.0, 0.5}, {-1.0, 10.0}}) {
    Model<double> truth = test::random_model<double>(15, 2, 5);
    for (double& lambda : truth.spectrum) lambda /= scale * scale;
    MomentLearner<double> learner(learner_options(15, 2), std::nullopt, test::pool());
    learn_in_blocks(learner, planted_rows(12000, truth, 1, 0, shift, scale).dense());
    EXPECT_LT(rms_error(learner.model(), planted_rows(500, truth, 2, 0, shift, scale)), 1e-3);
    EXPECT_FALSE(learner.is_constant());
  }
}

TEST(MomentLearner, ErrorDecreasesWithRowsUnderNoise) {
  const Model<double> truth = test::random_model<double>(10, 2, 5);
  const auto error_after = [&](Index count) {
    MomentLearner<double> learner(learner_options(10, 2), std::nullopt, test::pool());
    learn_in_blocks(learner, planted_rows(count, truth, 1, 1.0).dense());
    return rms_error(learner.model(), planted_rows(2000, truth, 2, 0));
  };
  EXPECT_LT(error_after(64000), 0.6 * error_after(8000));
  EXPECT_LT(error_after(64000), 0.15);
}

TEST(MomentLearner, ErrorIsThatOfTheMeanWithoutSignal) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const test::OwnedRows<double> rows = test::random_rows<double>(5000, 6, seed);
    MomentLearner<double> learner(learner_options(6, 2), std::nullopt, test::pool());
    learn_in_blocks(learner, rows.dense());
    const test::OwnedRows<double> fresh = test::random_rows<double>(5000, 6, 100 + seed);
    EXPECT_LT(rms_error(learner.model(), fresh), 1.02) << seed;
  }
}

TEST(MomentLearner, IsNotWorseThanTheMeanOnCorrelatedFeatures) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Model<double> truth = test::random_model<double>(8, 2, seed);
    Random random(seed, 9);
    const RowMajorMatrix<double> mix = random_normal<double>(random, 8, 8);
    const auto correlated = [&](Index count, std::uint64_t rows_seed) {
      RowMajorMatrix<double> X = test::random_rows<double>(count, 8, rows_seed).X * mix;
      const Vector<double> y = test::brute_force_predictions(truth, X) / 30;
      return test::OwnedRows<double>(X, std::vector<double>(y.data(), y.data() + y.size()));
    };
    MomentLearner<double> learner(learner_options(8, 4), std::nullopt, test::pool());
    learn_in_blocks(learner, correlated(10000, 1).dense());
    const test::OwnedRows<double> fresh = correlated(3000, 2);
    const double deviation =
        std::sqrt((as_vector(fresh.targets).array() - as_vector(fresh.targets).mean()).square().mean());
    EXPECT_LT(rms_error(learner.model(), fresh), 1.01 * deviation) << seed;
  }
}

TEST(MomentLearner, ResultDoesNotDependOnBlocksOrLayout) {
  const test::OwnedRows<double> rows = planted_rows(3000, test::random_model<double>(6, 2, 5), 1, 0.1);
  MomentLearner<double> one(learner_options(6, 2), std::nullopt, test::pool());
  MomentLearner<double> other(learner_options(6, 2), std::nullopt, test::pool());
  learn_in_blocks(one, rows.dense(), 3000);
  learn_in_blocks(other, rows.sparse(), 77);
  EXPECT_EQ(one.steps_taken(), other.steps_taken());
  EXPECT_NEAR(rms_error(one.model(), rows), rms_error(other.model(), rows), 1e-9);
}

TEST(MomentLearner, RecoversModelAfterGrowing) {
  for (const Index left_dim : {Index(0), Index(3)}) {
    // The last feature of each side is 0 in the first 500 rows.
    const Model<double> truth = test::random_model<double>(6, 1, 5, left_dim);
    test::OwnedRows<double> rows = planted_rows(4000, truth, 1, 0.1);
    RowMajorMatrix<double> X = rows.X;
    X.topRows(500).col(5).setZero();
    X.topRows(500).col(left_dim > 0 ? 2 : 4).setZero();
    const Vector<double> y = test::brute_force_predictions(truth, X);
    rows = test::OwnedRows<double>(X, std::vector<double>(y.data(), y.data() + y.size()));
    RowMajorMatrix<double> early(500, 4);
    if (left_dim > 0)
      early << X.topRows(500).leftCols(2), X.topRows(500).middleCols(3, 2);
    else
      early = X.topRows(500).leftCols(4);
    const test::OwnedRows<double> first(early, std::vector<double>(rows.targets.begin(), rows.targets.begin() + 500));

    MomentLearner<double> grown(learner_options(4, 1, left_dim > 0 ? 2 : 0), 120, test::pool());
    std::vector<double> residuals(4000);
    grown.learn(first.dense(), std::span(residuals).first(500));
    grown.grow(6, left_dim);
    grown.learn(rows.dense().slice(500, 3500), std::span(residuals).first(3500));
    EXPECT_EQ(grown.model().dim(), 6);
    EXPECT_EQ(grown.model().left_dim, left_dim);
    const test::OwnedRows<double> fresh = planted_rows(500, truth, 7, 0);
    EXPECT_LT(rms_error(grown.model(), fresh), 0.1) << left_dim;
  }
}

TEST(MomentLearner, WeightsEqualRepetitions) {
  const test::OwnedRows<double> rows = planted_rows(1500, test::random_model<double>(5, 1, 5), 1, 0.3);
  // Every third row has the weight 2, or occurs twice.
  std::vector<double> weights(1500, 1.0);
  RowMajorMatrix<double> X(2000, 5);
  std::vector<double> y;
  for (Index i = 0; i < 1500; ++i) {
    const bool is_repeated = i % 3 == 0;
    if (is_repeated) weights[static_cast<std::size_t>(i)] = 2;
    for (int copy = 0; copy < (is_repeated ? 2 : 1); ++copy) {
      X.row(static_cast<Index>(y.size())) = rows.X.row(i);
      y.push_back(rows.targets[static_cast<std::size_t>(i)]);
    }
  }
  const test::OwnedRows<double> repeated(X, y);
  MomentLearner<double> weighted(learner_options(5, 1), 300, test::pool());
  MomentLearner<double> plain(learner_options(5, 1), 400, test::pool());
  std::vector<double> residuals(400);
  weighted.learn(rows.dense().weighted(weights).slice(0, 300), std::span(residuals).first(300));
  plain.learn(repeated.dense().slice(0, 400), residuals);
  // Both line-search the same step.
  for (MomentLearner<double>* learner : {&weighted, &plain})
    learner->learn(rows.dense().slice(900, 50), std::span(residuals).first(50));
  EXPECT_EQ(weighted.steps_taken(), plain.steps_taken());
  EXPECT_NEAR(rms_error(weighted.model(), rows), rms_error(plain.model(), rows), 1e-9);
}

TEST(MomentLearner, ArchivedLearnerContinuesBitIdentically) {
  const test::OwnedRows<float> rows = [] {
    const test::OwnedRows<double> planted = planted_rows(3000, test::random_model<double>(6, 2, 5), 1, 0.1);
    return test::OwnedRows<float>(planted.X.cast<float>(),
                                  std::vector<float>(planted.targets.begin(), planted.targets.end()));
  }();
  // Within a batch, at its end, and within a line search.
  for (const Index stop : {Index(1), Index(50), Index(72), Index(100), Index(1000), Index(2999)}) {
    MomentLearner<float> whole(learner_options(6, 2), std::nullopt, test::pool());
    learn_in_blocks(whole, rows.dense().slice(0, stop));
    Archive saved;
    whole.archive(saved);
    MomentLearner<float> resumed(learner_options(6, 2), std::nullopt, test::pool());
    Archive loaded(saved.arrays());
    resumed.archive(loaded);
    learn_in_blocks(whole, rows.dense().slice(stop, 3000 - stop));
    learn_in_blocks(resumed, rows.dense().slice(stop, 3000 - stop));
    Archive of_whole;
    whole.archive(of_whole);
    Archive of_resumed;
    resumed.archive(of_resumed);
    EXPECT_EQ(of_whole.arrays(), of_resumed.arrays()) << stop;
  }
}

TEST(MomentLearner, ThrowsForInvalidArchive) {
  MomentLearner<double> learner(learner_options(4, 1), std::nullopt, test::pool());
  learn_in_blocks(learner, test::random_rows<double>(10, 4, 1).dense());
  Archive saved;
  learner.archive(saved);
  for (const auto& [name, numbers] : saved.arrays()) {
    auto arrays = saved.arrays();
    arrays.erase(name);
    Archive incomplete(arrays);
    MomentLearner<double> other(learner_options(4, 1), std::nullopt, test::pool());
    EXPECT_THROW(other.archive(incomplete), std::runtime_error) << name;
    arrays[name] = std::vector<double>(numbers.size() + 1);
    Archive longer(arrays);
    MomentLearner<double> third(learner_options(4, 1), std::nullopt, test::pool());
    EXPECT_THROW(third.archive(longer), std::runtime_error) << name;
  }
}

}  // namespace
}  // namespace dyad
