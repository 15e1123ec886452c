#include <dyad/recover.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

namespace dyad {
namespace {

constexpr Update both_updates[] = {Update::one_scan, Update::paper};

RecoverOptions problem(Index dim, Index rank, std::uint64_t seed = 1) {
  RecoverOptions options;
  options.solver = Solver::moment;
  options.problem.dim = dim;
  options.problem.rank = rank;
  options.problem.seed = seed;
  return options;
}

std::string name(const RecoverOptions& options) {
  return std::string(options.update == Update::paper ? "paper" : "one-scan") + ", condition " +
         std::to_string(options.problem.condition) + ", seed " + std::to_string(options.problem.seed);
}

/// Mean error of the last `points` batches, after a run with noise has reached its floor.
double floor_error(const RecoverySummary& summary, std::size_t points) {
  double sum = 0;
  for (std::size_t i = 0; i < points; ++i) sum += summary.trace[summary.trace.size() - 1 - i].error();
  return sum / static_cast<double>(points);
}

TEST(Recover, ConvergesForAllConditionNumbers) {
  for (const Update update : both_updates)
    for (const double condition : {1.0, 20.0, 1000.0})
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        RecoverOptions options = problem(100, 3, seed);
        options.update = update;
        options.problem.condition = condition;
        options.batch = 1500;
        const RecoverySummary summary = recover(options);
        EXPECT_EQ(summary.outcome, Outcome::converged) << name(options);
        EXPECT_LE(summary.trace.back().error(), 1e-6) << name(options);
        EXPECT_LE(summary.rows, 260 * 3 * 100) << name(options);
      }
}

TEST(Recover, ConvergesLinearly) {
  for (const Update update : both_updates)
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      RecoverOptions options = problem(100, 3, seed);
      options.update = update;
      options.batch = 20 * 3 * 100;
      options.tolerance = 1e-9;
      const RecoverySummary summary = recover(options);
      ASSERT_EQ(summary.outcome, Outcome::converged) << name(options);
      double log_factors = 0;
      int factors = 0;
      for (std::size_t t = 1; t < summary.trace.size(); ++t) {
        const double before = summary.trace[t - 1].error();
        if (before > 0.5) continue;
        const double factor = before / summary.trace[t].error();
        EXPECT_GE(factor, 2) << name(options) << ", batch " << t;
        log_factors += std::log(factor);
        ++factors;
      }
      EXPECT_GE(factors, 15);
      EXPECT_GE(std::exp(log_factors / factors), 2.7) << name(options);
    }
}

void expect_floor_halves(const RecoverOptions& options) {
  const auto floor_with = [&](Index batch) {
    RecoverOptions with = options;
    with.batch = batch;
    with.rows = 30 * batch;
    return floor_error(recover(with), 12);
  };
  const double ratio = floor_with(6000) / floor_with(24000);
  EXPECT_GT(ratio, 2 * 0.75) << name(options);
  EXPECT_LT(ratio, 2 * 1.25) << name(options);
}

TEST(Recover, NoiseFloorHalvesWithFourTimesTheBatch) {
  for (const Update update : both_updates) {
    RecoverOptions options = problem(100, 3);
    options.update = update;
    options.problem.noise = 0.1;
    expect_floor_halves(options);
  }
}

TEST(Recover, ResidualSpectrumFloorHalvesWithFourTimesTheBatch) {
  for (const Update update : both_updates) {
    RecoverOptions options = problem(100, 3);
    options.update = update;
    options.problem.residual = 0.01;
    expect_floor_halves(options);
  }
}

TEST(Recover, SensingAndPhaseConverge) {
  for (const Kind kind : {Kind::sensing, Kind::phase})
    for (const Update update : both_updates)
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        RecoverOptions options = problem(200, kind == Kind::phase ? 1 : 3, seed);
        options.problem.kind = kind;
        options.update = update;
        const RecoverySummary summary = recover(options);
        EXPECT_EQ(summary.outcome, Outcome::converged) << name(options);
        EXPECT_EQ(summary.trace.back().error_w, 0);
        EXPECT_LT(summary.trace.back().error_a, 1e-6) << name(options);
      }
}

TEST(Recover, BilinearConverges) {
  for (const Update update : both_updates)
    for (const double condition : {1.0, 100.0})
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        RecoverOptions options = problem(60, 3, seed);
        options.problem.kind = Kind::bilinear;
        options.problem.right_dim = 80;
        options.problem.condition = condition;
        options.update = update;
        EXPECT_EQ(recover(options).outcome, Outcome::converged) << name(options);
      }
  RecoverOptions options = problem(20, 2);
  options.problem.kind = Kind::bilinear;
  options.problem.right_dim = 30;
  options.problem.intercept = 2;
  const RecoverySummary summary = recover(options);
  EXPECT_EQ(summary.outcome, Outcome::converged);
  EXPECT_LT(summary.trace.back().error_b, 1e-5);
}

Index rows_with(FeatureDistribution features, Moments moments, std::uint64_t seed) {
  RecoverOptions options = problem(100, 3, seed);
  options.problem.features = features;
  options.moments = moments;
  options.batch = 20 * 3 * 100;
  const RecoverySummary summary = recover(options);
  EXPECT_EQ(summary.outcome, Outcome::converged) << name(options);
  return summary.rows;
}

/// Ratio of the rows needed with estimated moments to the rows needed with Gaussian moments, summed over seeds 1 to 5.
double estimated_over_gaussian(FeatureDistribution features) {
  Index gaussian = 0;
  Index estimated = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    gaussian += rows_with(features, Moments::gaussian, seed);
    estimated += rows_with(features, Moments::estimated, seed);
  }
  return static_cast<double>(estimated) / static_cast<double>(gaussian);
}

TEST(Recover, EstimatedMomentsSaveRowsForSkewedFeatures) {
  EXPECT_LE(estimated_over_gaussian(FeatureDistribution::skewed), 0.7);
}

TEST(Recover, EstimatedMomentsCostNoRowsForUniformFeatures) {
  EXPECT_LE(estimated_over_gaussian(FeatureDistribution::uniform), 1.05);
}

TEST(Recover, AutomaticMomentsDependOnData) {
  RecoverOptions options = problem(50, 2);
  options.rows = options.batch_rows();
  EXPECT_EQ(recover(options).moments, Moments::gaussian);
  options.problem.features = FeatureDistribution::skewed;
  for (const Update update : both_updates) {
    options.update = update;
    EXPECT_EQ(recover(options).moments, Moments::estimated);
  }
}

TEST(Recover, TwoValuedFeaturesConvergeWithZeroDiagonal) {
  for (const Update update : both_updates)
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      RecoverOptions options = problem(100, 3, seed);
      options.problem.features = FeatureDistribution::rademacher;
      options.problem.diagonal = Diagonal::zero;
      options.update = update;
      const RecoverySummary summary = recover(options);
      EXPECT_EQ(summary.outcome, Outcome::converged) << name(options);
      EXPECT_LE(summary.rows, 220 * 3 * 100) << name(options);
    }
}

TEST(Recover, FreeDiagonalRecoversSquares) {
  for (const Update update : both_updates)
    for (const FeatureDistribution features : {FeatureDistribution::gaussian, FeatureDistribution::uniform}) {
      RecoverOptions options = problem(60, 2);
      options.problem.features = features;
      options.problem.diagonal = Diagonal::free;
      options.problem.intercept = 1;
      options.update = update;
      const RecoverySummary summary = recover(options);
      EXPECT_EQ(summary.outcome, Outcome::converged) << name(options);
      EXPECT_LT(summary.trace.back().error_squares, 1e-5) << name(options);
      EXPECT_LT(summary.trace.back().error_b, 1e-5) << name(options);
    }
}

TEST(Recover, TheoryBoundsMeasuredErrors) {
  for (const Update update : both_updates)
    for (const Kind kind : {Kind::gfm, Kind::sensing})
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        RecoverOptions options = problem(30, 2, seed);
        options.problem.kind = kind;
        options.update = update;
        options.theory = true;
        options.batch = 600 * 2 * 30;
        const RecoverySummary summary = recover(options);
        EXPECT_EQ(summary.outcome, Outcome::converged) << name(options);
        int bounds = 0;
        for (const RecoveryPoint& point : summary.trace) {
          if (!point.theory || !point.theory->is_applicable) continue;
          ++bounds;
          EXPECT_LE(point.tan_theta, point.theory->alpha_bound) << name(options);
          EXPECT_LE(point.error_w, point.theory->beta_bound) << name(options);
          EXPECT_LE(point.error_M, point.theory->gamma_bound) << name(options);
        }
        EXPECT_GE(bounds, 3) << name(options);
      }
}

TEST(Recover, PositiveSpectrumAndInterceptAreRecovered) {
  for (const Update update : both_updates) {
    RecoverOptions options = problem(60, 4);
    options.update = update;
    options.problem.condition = 5;
    options.problem.signs = Signs::positive;
    options.problem.intercept = -3;
    const RecoverySummary summary = recover(options);
    EXPECT_EQ(summary.outcome, Outcome::converged) << name(options);
    EXPECT_LT(summary.trace.back().error_b, 1e-5) << name(options);
    EXPECT_GE(*std::min_element(summary.model.spectrum.begin(), summary.model.spectrum.end()), 0);
  }
}

TEST(Recover, FullRankConverges) {
  const RecoverySummary summary = recover(problem(12, 12));
  EXPECT_EQ(summary.outcome, Outcome::converged);
}

TEST(Recover, SameSeedAndThreadsGiveIdenticalModels) {
  for (const Update update : both_updates)
    for (const int threads : {1, 2}) {
      RecoverOptions options = problem(50, 3);
      options.update = update;
      options.threads = threads;
      const RecoverySummary once = recover(options);
      const RecoverySummary again = recover(options);
      EXPECT_EQ(once.model.factors, again.model.factors);
      EXPECT_EQ(once.model.spectrum, again.model.spectrum);
      EXPECT_EQ(once.model.weights, again.model.weights);
    }
}

TEST(Recover, ThreadCountChangesOnlyRounding) {
  RecoverOptions options = problem(50, 3);
  options.rows = 10 * 6 * 3 * 50;
  options.threads = 1;
  const RecoverySummary one = recover(options);
  options.threads = 5;
  const RecoverySummary five = recover(options);
  ASSERT_EQ(one.trace.size(), five.trace.size());
  for (std::size_t t = 0; t < one.trace.size(); ++t) EXPECT_NEAR(one.trace[t].error(), five.trace[t].error(), 1e-10);
}

TEST(Recover, CountsRowsAndRowReads) {
  RecoverOptions options = problem(30, 2);
  options.batch = 500;
  options.rows = 1800;
  RecoverySummary summary = recover(options);
  EXPECT_EQ(summary.rows, 1500);
  EXPECT_EQ(summary.row_reads, 1500);
  EXPECT_EQ(summary.trace.size(), 3);
  EXPECT_EQ(summary.trace.back().rows, 1500);
  EXPECT_EQ(summary.outcome, Outcome::budget);
  options.update = Update::paper;
  summary = recover(options);
  EXPECT_EQ(summary.rows, 1500);
  EXPECT_GE(summary.row_reads, 3000);
}

TEST(Recover, EstimatesNoise) {
  RecoverOptions options = problem(50, 2);
  options.problem.noise = 0.2;
  options.batch = 40'000;
  options.rows = 400'000;
  EXPECT_NEAR(recover(options).noise, 0.2, 0.02);
}

TEST(Recover, OutcomeTextNamesReason) {
  const auto outcome_text_of = [](RecoverOptions options, Outcome expected) {
    const RecoverySummary summary = recover(options);
    EXPECT_EQ(summary.outcome, expected) << summary.outcome_text;
    return summary.outcome_text;
  };
  RecoverOptions small_batch = problem(100, 3);
  small_batch.batch = 300;
  small_batch.rows = 60'000;
  EXPECT_FALSE(small_batch.warning().empty());
  EXPECT_NE(outcome_text_of(small_batch, Outcome::diverged).find("too small"), std::string::npos);

  RecoverOptions overflow = small_batch;
  overflow.batch = 10;
  EXPECT_NE(outcome_text_of(overflow, Outcome::diverged).find("too small"), std::string::npos);

  RecoverOptions high_rank = problem(100, 20);
  high_rank.rows = 1000;
  EXPECT_NE(outcome_text_of(high_rank, Outcome::budget).find("rank too high"), std::string::npos);
  EXPECT_NE(outcome_text_of(high_rank, Outcome::budget).find("at most rank 9"), std::string::npos);

  RecoverOptions noisy = problem(50, 2);
  noisy.problem.noise = 0.1;
  EXPECT_NE(outcome_text_of(noisy, Outcome::budget).find("noise floor"), std::string::npos);

  for (const Kind kind : {Kind::gfm, Kind::bilinear}) {
    RecoverOptions with_residual = problem(50, 2);
    with_residual.problem.kind = kind;
    with_residual.problem.right_dim = kind == Kind::bilinear ? 60 : 0;
    with_residual.problem.residual = 0.02;
    with_residual.rows = 40 * with_residual.batch_rows();
    EXPECT_NE(outcome_text_of(with_residual, Outcome::budget).find("noise floor"), std::string::npos);
  }

  RecoverOptions row_limited = problem(50, 2);
  row_limited.rows = 100 * 50 * 2;
  EXPECT_TRUE(row_limited.warning().empty());
  EXPECT_NE(outcome_text_of(row_limited, Outcome::budget).find("out of rows"), std::string::npos);
}

TEST(Recover, StopsWhenInterrupted) {
  int batches = 0;
  RecoveryHooks hooks;
  hooks.progress = [&](const RecoveryPoint&) { ++batches; };
  hooks.interrupted = [&] { return batches == 3; };
  const RecoverySummary summary = recover(problem(50, 3), hooks);
  EXPECT_EQ(summary.outcome, Outcome::interrupted);
  EXPECT_EQ(summary.trace.size(), 3);
  EXPECT_TRUE(summary.model.is_finite());

  hooks.interrupted = [] { return true; };
  EXPECT_EQ(recover(problem(50, 3), hooks).outcome, Outcome::interrupted);
}

TEST(Recover, RejectsInvalidOptions) {
  const auto expect_rejected = [](auto&& change) {
    RecoverOptions options = problem(20, 5);
    change(options);
    EXPECT_THROW(recover(options), std::invalid_argument);
  };
  expect_rejected([](RecoverOptions& options) { options.batch = 4; });
  expect_rejected([](RecoverOptions& options) { options.batch = 0; });
  expect_rejected([](RecoverOptions& options) { options.rows = 3; });
  expect_rejected([](RecoverOptions& options) { options.batch = 100, options.rows = 99; });
  expect_rejected([](RecoverOptions& options) { options.tolerance = 0; });
  expect_rejected([](RecoverOptions& options) { options.tolerance = NAN; });
  expect_rejected([](RecoverOptions& options) { options.threads = -2; });
}

}  // namespace
}  // namespace dyad
