#include <cmath>

#include <gtest/gtest.h>

#include <dyad/dataset.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "solvers/gauss_newton/gauss_newton.h"
#include "support.h"
#include "training/one_pass/stream_learner.h"

namespace dyad {
namespace {

constexpr Index signal_dim = 20;
constexpr Index signal_rank = 2;
constexpr Index measurement_count = 400;
/// Largest accepted ratio of the error to that of least squares over all rows. The filter has a diagonal covariance.
/// For Gaussian x the gradient 2 (a'x) x_j has the second moments 4 (|a|^2 I + 2 aa'), so that its step along a is up
/// to 3 times that of least squares. MeasuredRows: 1.42 for files, 1.13 for streams.
constexpr double max_error_ratio = 1.5;

/// Measurements x'Mx without noise. The target of row `wrong`, if there is such a row, is replaced by `value`.
struct MeasuredRows {
  Model<double> truth{signal_dim, signal_rank};
  test::OwnedRows<double> rows;

  explicit MeasuredRows(std::uint64_t seed, std::size_t wrong, double value)
      : rows(test::random_rows<double>(measurement_count, signal_dim, seed)) {
    truth = test::random_model<double>(signal_dim, signal_rank, seed);
    truth.intercept = 0;
    std::fill(truth.weights.begin(), truth.weights.end(), 0.0);
    const Vector<double> f = test::brute_force_predictions(truth, rows.X);
    rows.targets.assign(f.begin(), f.end());
    if (wrong < rows.targets.size()) rows.targets[wrong] = value;
  }

  [[nodiscard]] double error_of(const Model<double>& model) const {
    return (test::dense_interactions(model) - test::dense_interactions(truth)).norm();
  }

  /// Error of the least squares fit to all rows, started from the true model.
  [[nodiscard]] double error_of_least_squares() const {
    NewtonOptions options;
    options.shape.rank = signal_rank;
    options.shape.linear = options.shape.intercept = false;
    ThreadPool pool(1);
    const auto start = SignedFactors<double>::of(truth, Diagonal::tied, 0);
    return error_of(fit_gauss_newton(rows.dense(), options, pool, &start).parameters.model());
  }

  [[nodiscard]] TrainSummary train_model() const {
    DatasetView memory;
    memory.count = measurement_count;
    memory.features = MatrixView{signal_dim, rows.X.data(), signal_dim, 1};
    memory.targets = rows.targets;
    TrainOptions options;
    options.data.dataset = &memory;
    options.kind = Kind::sensing;
    options.rank = signal_rank;
    options.threads = 1;
    return train(options);
  }
};

/// Model in the units of the targets.
Model<double> model_of(const TrainSummary& summary) {
  const Predictor predictor = Predictor::from_bytes(summary.model_bytes);
  Model<double> model = predictor.model();
  // Stored models predict scaled targets. The ratio of two predictions of a row is the scale of the target.
  const test::OwnedRows<double> one = test::random_rows<double>(1, signal_dim, 5);
  DatasetView memory;
  memory.count = 1;
  memory.features = MatrixView{signal_dim, one.X.data(), signal_dim, 1};
  std::vector<double> value(1);
  (void)predictor.predict(memory, value);
  std::vector<double> scaled(1);
  model.predict(one.dense(), scaled);
  for (double& lambda : model.spectrum) lambda *= value[0] / scaled[0];
  return model;
}

TEST(ExactStart, RecoversTheModelWithoutNoise) {
  const MeasuredRows measured(1, measurement_count, 0);
  EXPECT_LT(measured.error_of(model_of(measured.train_model())), 1e-6);
}

TEST(ExactStart, IsWithdrawnAfterAnInconsistentRow) {
  for (const std::size_t wrong : {std::size_t{100}, std::size_t{390}, std::size_t{399}}) {
    const MeasuredRows measured(1, wrong, 100);
    const TrainSummary summary = measured.train_model();
    EXPECT_GT(summary.noise, 1e-6) << wrong;  // the noise of an exact fit is a rounding error
    EXPECT_LT(measured.error_of(model_of(summary)), max_error_ratio * measured.error_of_least_squares()) << wrong;
  }
}

TEST(ExactStart, IsWithdrawnAfterAnInconsistentRowOfAStream) {
  const MeasuredRows measured(2, 390, 100);
  StreamOptions options;
  options.kalman.shape.dim = signal_dim;
  options.kalman.shape.rank = signal_rank;
  options.kalman.shape.linear = options.kalman.shape.intercept = false;
  options.moment.emplace();
  options.moment->shape.dim = signal_dim;
  options.moment->shape.rank = signal_rank;
  options.moment->shape.linear = options.moment->shape.intercept = false;
  options.buffered_start.memory = 1e9;
  options.buffered_start.searches_starts = true;
  StreamLearner<double> learner(options, test::pool());
  std::vector<double> predictions(measurement_count);
  learner.learn(measured.rows.dense().slice(0, 390), std::span(predictions).first(390));
  EXPECT_TRUE(learner.fits_exactly());
  learner.learn(measured.rows.dense().slice(390, 10), std::span(predictions).subspan(390));
  EXPECT_FALSE(learner.fits_exactly());
  EXPECT_GT(learner.noise_variance(), 1);
  EXPECT_LT(measured.error_of(learner.model()), max_error_ratio * measured.error_of_least_squares());
}

}  // namespace
}  // namespace dyad
