#include "solvers/anova/anova_fit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

#include <gtest/gtest.h>

#include "solvers/anova/anova_rows.h"
#include "solvers/anova/main_effects.h"
#include "solvers/anova/noise/noise_fit.h"

namespace dyad {
namespace {

using test::AnovaRows;

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

/// Targets f(row) + noise.
void set_targets(AnovaRows& rows, const std::function<double(std::size_t)>& f, double noise, std::uint64_t seed) {
  Random random(seed, 1);
  for (std::size_t i = 0; i < rows.targets.size(); ++i) rows.targets[i] = f(i) + noise * random.normal();
}

/// Two columns with a curve each and a product, and a third one without effect.
AnovaRows planted_rows(Index count, double noise, std::uint64_t seed) {
  AnovaRows rows = test::uniform_rows(count, 3, seed);
  const auto& x = rows.table.columns;
  set_targets(
      rows,
      [&](std::size_t i) { return std::sin(6 * x[0].values[i]) + 2 * (x[0].values[i] - 0.5) * (x[1].values[i] - 0.5); },
      noise, seed);
  return rows;
}

double rms(const std::vector<double>& values) {
  return as_vector(values).norm() / std::sqrt(static_cast<double>(values.size()));
}

double log_loss(const AnovaRows& rows, const std::vector<double>& log_odds) {
  double sum = 0;
  for (std::size_t i = 0; i < log_odds.size(); ++i) sum += std::log1p(std::exp(-rows.targets[i] * log_odds[i]));
  return sum / static_cast<double>(log_odds.size());
}

double entropy_of_constant(double probability) {
  return -probability * std::log(probability) - (1 - probability) * std::log(1 - probability);
}

/// Root mean square error of the fit of f at 500 uniform points with noise of deviation 0.3, over six data sets.
double curve_error(const std::function<double(double)>& f) {
  double sum = 0;
  constexpr int repetitions = 6;
  for (int seed = 0; seed < repetitions; ++seed) {
    AnovaRows rows = test::uniform_rows(500, 1, static_cast<std::uint64_t>(100 + seed));
    const std::vector<double>& x = rows.table.columns[0].values;
    set_targets(
        rows, [&](std::size_t i) { return f(x[i]); }, 0.3, static_cast<std::uint64_t>(seed));
    const std::vector<double> predictions = test::predict(test::fit(rows).model, rows.table);
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(predictions[i] - f(x[i]), 2);
  }
  return std::sqrt(sum / (500 * repetitions));
}

// The bounds are 1.3 times the errors of SciPy's make_smoothing_spline with generalized cross-validation on the same
// distribution (six data sets, abscissae scaled to [0, 30]): sine 0.0388, step 0.1252, kink 0.0437, parabola 0.0380.
constexpr double spline_factor = 1.3;

TEST(AnovaCurve, SineIsWithinSplineError) {
  EXPECT_LT(curve_error([](double x) { return std::sin(2 * std::numbers::pi * x); }), spline_factor * 0.0388);
}

TEST(AnovaCurve, StepIsWithinSplineError) {
  EXPECT_LT(curve_error([](double x) { return x < 0.5 ? -1.0 : 1.0; }), spline_factor * 0.1252);
}

TEST(AnovaCurve, KinkIsWithinSplineError) {
  EXPECT_LT(curve_error([](double x) { return 4 * std::abs(x - 0.5) - 1; }), spline_factor * 0.0437);
}

TEST(AnovaCurve, ParabolaIsWithinSplineError) {
  EXPECT_LT(curve_error([](double x) { return 8 * (x - 0.5) * (x - 0.5) - 1; }), spline_factor * 0.0380);
}

TEST(AnovaCurve, StraightLineStaysStraight) {
  AnovaRows rows = test::uniform_rows(500, 1, 7);
  const std::vector<double>& x = rows.table.columns[0].values;
  set_targets(
      rows, [&](std::size_t i) { return 2 * x[i] - 1; }, 0.3, 7);
  const std::vector<double> predictions = test::predict(test::fit(rows).model, rows.table);
  Matrix<double> line(500, 2);
  line.col(0).setOnes();
  line.col(1) = as_vector(x);
  const Vector<double> p = as_vector(predictions);
  const Vector<double> residual = p - line * (line.transpose() * line).ldlt().solve(line.transpose() * p);
  // standard error of the line at its mean: 0.3 / sqrt(500) = 0.013
  EXPECT_LT(residual.norm() / std::sqrt(500.0), 0.013);
}

TEST(AnovaCurve, StraightLineContinuesBeyondTheRows) {
  AnovaRows rows = test::uniform_rows(500, 1, 7);
  const std::vector<double>& x = rows.table.columns[0].values;
  set_targets(
      rows, [&](std::size_t i) { return 2 * x[i] - 1; }, 0.1, 7);
  const AnovaFit fit = test::fit(rows);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const double width = *high - *low;
  ColumnTable outside = rows.table;
  outside.columns[0].values = {*low - width / 4, *low, *high, *high + width / 4};
  std::vector<double> predictions(4);
  std::vector<double> variances(4);
  fit.model.predict(outside, predictions);
  fit.model.predict_variances(outside, variances);
  // the same slope of 2 inside and outside, whose standard error is below 0.1 / sqrt(500 var(x)) = 0.0155 / width
  EXPECT_NEAR(predictions[1] - predictions[0], width / 2, 5 * 0.0155);
  EXPECT_NEAR(predictions[3] - predictions[2], width / 2, 5 * 0.0155);
  EXPECT_GT(variances[3], variances[2]);
  EXPECT_GT(variances[0], variances[1]);
}

TEST(AnovaFit, FindsPlantedPair) {
  AnovaRows rows = planted_rows(1000, 0.05, 1);
  const AnovaFit fit = test::fit(rows);
  const AnovaRows other = planted_rows(1000, 0, 2);
  const double error = test::root_mean_square_difference(test::predict(fit.model, other.table), other.targets);
  EXPECT_LT(error, 0.03);
  EXPECT_NEAR(std::sqrt(fit.model.posterior.noise_variance), 0.05, 0.005);
}

TEST(AnovaFit, RowOrderHasNoEffect) {
  const AnovaRows rows = planted_rows(300, 0.1, 3);
  std::vector<std::size_t> order(300);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::reverse(order.begin(), order.end());
  std::swap(order[5], order[200]);
  const AnovaFit fit = test::fit(rows);
  const AnovaFit permuted = test::fit(test::select_rows(rows, order));
  EXPECT_LT(test::root_mean_square_difference(test::predict(fit.model, rows.table),
                                              test::predict(permuted.model, rows.table)),
            1e-6);
}

TEST(AnovaFit, ThreadCountHasNoEffect) {
  const AnovaRows rows = planted_rows(300, 0.1, 4);
  for (const bool has_curves : {true, false}) {
    AnovaOptions options;
    options.has_curves = has_curves;
    ThreadPool one(1);
    ThreadPool three(3);
    const AnovaFit a = fit_anova(rows.table, rows.targets, {}, options, one);
    const AnovaFit b = fit_anova(rows.table, rows.targets, {}, options, three);
    EXPECT_EQ(test::predict(a.model, rows.table), test::predict(b.model, rows.table));
    EXPECT_EQ(a.log_evidence, b.log_evidence);
  }
}

TEST(AnovaFit, WeightsAreRepetitionCounts) {
  // Knots at all values, so that they do not depend on the weights.
  AnovaRows rows = planted_rows(300, 0.2, 5);
  for (ColumnTable::Column& column : rows.table.columns)
    for (double& value : column.values) value = std::floor(8 * value);
  std::vector<double> weights;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < 300; ++i) {
    weights.push_back(static_cast<double>(1 + i % 3));
    order.insert(order.end(), 1 + i % 3, i);
  }
  const AnovaFit weighted = test::fit(rows, {}, weights);
  const AnovaFit repeated = test::fit(test::select_rows(rows, order));
  const std::vector<double> expected = test::predict(repeated.model, rows.table);
  EXPECT_LT(test::root_mean_square_difference(test::predict(weighted.model, rows.table), expected),
            0.02 * rms(expected));
}

TEST(AnovaFit, PredictedVariancesEqualDenseFormula) {
  const AnovaRows rows = planted_rows(200, 0.1, 6);
  const AnovaModel model = test::fit(rows).model;
  const AnovaPosterior& posterior = model.posterior;
  std::vector<double> variances(200);
  model.predict_variances(rows.table, variances);
  std::vector<HatWeights> hats;
  for (Index i = 0; i < 200; i += 17) {
    model.evaluate_axes(rows.table, i, hats);
    Vector<double> direction = -posterior.center;
    Index first = 0;
    for (std::size_t b = 0; b < model.blocks.size(); ++b) {
      const RowMajorMatrix<double>& F = posterior.factors[b];
      model.for_each_weight(model.blocks[b], hats.data(), [&](Index coefficient, double weight) {
        direction.segment(first, F.cols()) += weight * F.row(coefficient).transpose();
      });
      first += F.cols();
    }
    EXPECT_NEAR(variances[static_cast<std::size_t>(i)],
                (posterior.root * direction).squaredNorm() + posterior.intercept_variance, 1e-12);
  }
}

TEST(AnovaFit, IntervalsCoverThePlantedFunction) {
  const AnovaRows rows = planted_rows(800, 0.3, 8);
  const AnovaModel model = test::fit(rows).model;
  const AnovaRows truth = planted_rows(2000, 0, 9);
  const std::vector<double> predictions = test::predict(model, truth.table);
  std::vector<double> variances(2000);
  model.predict_variances(truth.table, variances);
  Index covered = 0;
  for (std::size_t i = 0; i < 2000; ++i)
    if (std::abs(predictions[i] - truth.targets[i]) < 1.96 * std::sqrt(variances[i])) ++covered;
  EXPECT_GT(covered, 1700);
}

/// Rows whose noise has the deviation 0.1 + x_1.
AnovaRows heteroscedastic_rows(Index count, std::uint64_t seed) {
  AnovaRows rows = test::uniform_rows(count, 3, seed);
  const auto& x = rows.table.columns;
  Random random(seed, 2);
  for (std::size_t i = 0; i < rows.targets.size(); ++i)
    rows.targets[i] = std::sin(6 * x[0].values[i]) + (0.1 + x[1].values[i]) * random.normal();
  return rows;
}

TEST(AnovaNoise, IntervalsFollowTheVarianceOfTheNoise) {
  const AnovaModel model = test::fit(heteroscedastic_rows(1000, 1)).model;
  const AnovaRows fresh = heteroscedastic_rows(4000, 2);
  const std::vector<double> predictions = test::predict(model, fresh.table);
  std::vector<double> variances(predictions.size());
  std::vector<double> noise(predictions.size());
  model.predict_variances(fresh.table, variances);
  model.predict_noise(fresh.table, noise);
  double inside[2] = {0, 0};
  double log_error = 0;
  for (std::size_t i = 0; i < noise.size(); ++i) {
    const double ratio = std::abs(fresh.targets[i] - predictions[i]) / std::sqrt(variances[i] + noise[i]);
    inside[0] += ratio < 0.99446 ? 1 : 0;
    inside[1] += ratio < 1.95996 ? 1 : 0;
    log_error += std::pow(0.5 * std::log(noise[i]) - std::log(0.1 + fresh.table.columns[1].values[i]), 2);
  }
  // Standard errors: 0.007 and 0.003 of the fresh rows, and 0.015 and 0.007 of the calibration with 1,000 rows.
  EXPECT_NEAR(inside[0] / 4000, 0.68, 5 * 0.017);
  EXPECT_NEAR(inside[1] / 4000, 0.95, 5 * 0.008);
  // A constant deviation has the root mean square error 0.6 of its logarithm.
  EXPECT_LT(std::sqrt(log_error / 4000), 0.3);
}

// The weights of the rows reduce the error of the function.
TEST(AnovaNoise, WeightsOfRowsReduceTheError) {
  constexpr int repetitions = 12;
  Vector<double> differences(repetitions);
  for (int r = 0; r < repetitions; ++r) {
    const AnovaRows rows = heteroscedastic_rows(400, static_cast<std::uint64_t>(40 + r));
    const AnovaOptions options;
    TermFit fit(rows.table, rows.targets, {}, options, test::pool());
    fit_main_effects(fit);
    AnovaFit result = fit.make_result();
    std::vector<double> truth;
    for (const double x : rows.table.columns[0].values) truth.push_back(std::sin(6 * x));
    const double before = test::root_mean_square_difference(test::predict(result.model, rows.table), truth);
    fit_noise(fit, result);
    differences[r] = test::root_mean_square_difference(test::predict(result.model, rows.table), truth) - before;
  }
  // The mean is -0.028 with a standard error of 0.005.
  EXPECT_LT(differences.mean(), 0);
}

TEST(AnovaNoise, ConstantVarianceIsSelectedForEqualNoise) {
  const AnovaModel model = test::fit(planted_rows(500, 0.3, 1)).model;
  EXPECT_TRUE(model.log_noise.blocks.empty());
}

TEST(AnovaFit, MissingValuesHaveALevelOfTheirOwn) {
  AnovaRows rows = test::uniform_rows(600, 1, 10);
  std::vector<double>& x = rows.table.columns[0].values;
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = missing;
  set_targets(
      rows, [&](std::size_t i) { return std::isnan(x[i]) ? 3.0 : x[i]; }, 0.1, 10);
  ColumnTable table;
  table.columns.push_back({false, {missing, 0.5}});
  const std::vector<double> predictions = test::predict(test::fit(rows).model, table);
  EXPECT_NEAR(predictions[0], 3, 0.05);
  EXPECT_NEAR(predictions[1], 0.5, 0.05);
}

TEST(AnovaFit, UnknownCategoriesAndUnseenMissingValuesAreFinite) {
  AnovaRows rows = test::uniform_rows(200, 1, 11);
  std::vector<double> categories;
  for (std::size_t i = 0; i < 200; ++i) categories.push_back(static_cast<double>(i % 4));
  rows.add_column(true).values = categories;
  set_targets(
      rows, [&](std::size_t i) { return categories[i] + rows.table.columns[0].values[i]; }, 0.1, 11);
  ColumnTable table;
  table.columns.push_back({false, {missing, 0.5, 100}});
  table.columns.push_back({true, {2, 17, -1}});
  const AnovaModel model = test::fit(rows).model;
  EXPECT_TRUE(as_vector(test::predict(model, table)).allFinite());
  // An unknown category has no function value: the prediction is near the mean over categories.
  EXPECT_NEAR(test::predict(model, table)[1], 2, 0.7);
}

TEST(AnovaFit, ConstantColumnsAreIgnored) {
  AnovaRows rows = planted_rows(200, 0.1, 12);
  const std::vector<double> expected = test::predict(test::fit(rows).model, rows.table);
  rows.add_column().values.assign(200, 1.5);
  EXPECT_EQ(test::predict(test::fit(rows).model, rows.table), expected);
}

TEST(AnovaFit, DuplicateColumnsDoNotChangeTheFitMuch) {
  AnovaRows rows = planted_rows(400, 0.1, 13);
  const std::vector<double> expected = test::predict(test::fit(rows).model, rows.table);
  const std::vector<double> copy = rows.table.columns[0].values;
  rows.add_column().values = copy;
  EXPECT_LT(test::root_mean_square_difference(test::predict(test::fit(rows).model, rows.table), expected), 0.05);
}

TEST(AnovaFit, FewRowsAreFinite) {
  for (const Index count : {1, 2, 3, 5})
    for (const bool is_classification : {false, true})
      for (const bool has_curves : {false, true}) {
        AnovaRows rows = test::uniform_rows(count, 2, 14);
        for (std::size_t i = 0; i < rows.targets.size(); ++i) rows.targets[i] = i % 2 == 0 ? 1 : -1;
        AnovaOptions options;
        options.is_classification = is_classification;
        options.has_curves = has_curves;
        const AnovaFit fit = test::fit(rows, options);
        EXPECT_TRUE(fit.model.is_finite()) << count;
        EXPECT_TRUE(as_vector(test::predict(fit.model, rows.table)).allFinite()) << count;
        std::vector<double> variances(rows.targets.size());
        fit.model.predict_variances(rows.table, variances);
        EXPECT_TRUE(as_vector(variances).allFinite()) << count;
      }
}

TEST(AnovaFit, ConstantTargetsArePredicted) {
  AnovaRows rows = test::uniform_rows(50, 3, 15);
  rows.targets.assign(50, 2.5);
  const std::vector<double> predictions = test::predict(test::fit(rows).model, rows.table);
  for (const double prediction : predictions) EXPECT_NEAR(prediction, 2.5, 1e-6);
}

TEST(AnovaFit, TableWithoutColumnsPredictsTheMean) {
  AnovaRows rows;
  rows.targets = {1, 2, 6};
  EXPECT_NEAR(test::fit(rows).model.intercept, 3, 1e-12);
}

TEST(AnovaFit, IdentifiersDoNotExplainNoise) {
  AnovaRows rows = test::uniform_rows(400, 1, 16);
  std::vector<double> identifiers(400);
  std::iota(identifiers.begin(), identifiers.end(), 0.0);
  rows.add_column(true).values = identifiers;
  set_targets(
      rows, [](std::size_t) { return 0.0; }, 1, 16);
  const double deviation = rms(test::predict(test::fit(rows).model, rows.table));
  EXPECT_LT(deviation, 0.15);
}

TEST(AnovaFit, HeavyTiesKeepTheirOwnValue) {
  // Half of the rows are 0, where the function has a jump.
  AnovaRows rows = test::uniform_rows(1000, 1, 17);
  std::vector<double>& x = rows.table.columns[0].values;
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = 0;
  set_targets(
      rows, [&](std::size_t i) { return x[i] == 0 ? 2.0 : x[i]; }, 0.1, 17);
  ColumnTable table;
  table.columns.push_back({false, {0, 0.3}});
  const std::vector<double> predictions = test::predict(test::fit(rows).model, table);
  EXPECT_NEAR(predictions[0], 2, 0.05);
  EXPECT_NEAR(predictions[1], 0.3, 0.06);
}

// Weights of 10 columns and 30 rows. The optimal predictor is ridge regression with the variances of the weights and of
// the noise.
TEST(AnovaFit, FewRowsOfALineAreFittedAsByRidgeRegression) {
  constexpr Index count = 30;
  constexpr Index columns = 10;
  constexpr int repetitions = 20;
  constexpr double noise = 1;
  const double weight_deviation = std::sqrt(12.0 / columns);  // the line has a variance of 1
  Vector<double> differences(repetitions);
  for (int r = 0; r < repetitions; ++r) {
    const auto seed = static_cast<std::uint64_t>(60 + r);
    Random random(seed, 3);
    const Vector<double> weights =
        Vector<double>::NullaryExpr(columns, [&] { return weight_deviation * random.normal(); });
    const auto design = [&](const AnovaRows& rows) {
      Matrix<double> X(rows.table.count(), columns);
      for (Index j = 0; j < columns; ++j)
        X.col(j) = as_vector(rows.table.columns[static_cast<std::size_t>(j)].values).array() - 0.5;
      return X;
    };
    AnovaRows rows = test::uniform_rows(count, columns, seed);
    const Matrix<double> X = design(rows);
    const Vector<double> signal = X * weights;
    set_targets(
        rows, [&](std::size_t i) { return signal[static_cast<Index>(i)]; }, noise, seed);
    const AnovaRows fresh = test::uniform_rows(1000, columns, seed + 1000);
    const Matrix<double> Z = design(fresh);
    const Vector<double> ridge =
        (X.transpose() * X + noise / (weight_deviation * weight_deviation) * Matrix<double>::Identity(columns, columns))
            .ldlt()
            .solve(X.transpose() * as_vector(rows.targets));
    const auto loss = [&](const Vector<double>& predictions) {
      return std::sqrt(noise * noise + (predictions - Z * weights).squaredNorm() / 1000);
    };
    const std::vector<double> predictions = test::predict(test::fit(rows).model, fresh.table);
    differences[r] = loss(as_vector(predictions)) / loss(Z * ridge) - 1;
  }
  // The mean has a standard error of 0.009.
  EXPECT_LT(differences.mean(), 5 * 0.009);
}

TEST(AnovaFit, ManyNoiseColumnsStayNearTheConstant) {
  // Mean over data sets of the expected loss sqrt(1 + |f - mean|^2) of targets with variance 1.
  double loss = 0;
  constexpr int repetitions = 2;
  for (std::uint64_t seed = 18; seed < 18 + repetitions; ++seed) {
    AnovaRows rows = test::uniform_rows(500, 200, seed);
    set_targets(
        rows, [](std::size_t) { return 0.0; }, 1, seed);
    const AnovaModel model = test::fit(rows).model;
    std::vector<double> predictions = test::predict(model, test::uniform_rows(2000, 200, seed + 100).table);
    as_vector(predictions).array() -= as_vector(rows.targets).mean();
    loss += std::sqrt(1 + std::pow(rms(predictions), 2)) / repetitions;
  }
  EXPECT_LT(loss, 1.01);
}

TEST(AnovaClasses, RarePositivesAreNoWorseThanTheConstant) {
  const auto make = [](std::uint64_t seed) {
    AnovaRows rows = test::uniform_rows(4000, 5, seed);
    Random random(seed, 2);
    for (double& target : rows.targets) target = random.uniform() < 0.01 ? 1 : -1;
    return rows;
  };
  AnovaOptions options;
  options.is_classification = true;
  for (const bool has_curves : {true, false}) {
    options.has_curves = has_curves;
    const AnovaModel model = test::fit(make(20), options).model;
    const AnovaRows other = make(21);
    EXPECT_LT(log_loss(other, test::predict(model, other.table)), 1.05 * entropy_of_constant(0.01));
  }
}

TEST(AnovaClasses, SeparableClassesAreSeparated) {
  const auto make = [](std::uint64_t seed) {
    AnovaRows rows = test::uniform_rows(500, 3, seed);
    for (std::size_t i = 0; i < rows.targets.size(); ++i)
      rows.targets[i] = rows.table.columns[0].values[i] < 0.4 ? 1 : -1;
    return rows;
  };
  AnovaOptions options;
  options.is_classification = true;
  for (const bool has_curves : {true, false}) {
    options.has_curves = has_curves;
    const AnovaModel model = test::fit(make(22), options).model;
    const AnovaRows other = make(23);
    EXPECT_LT(log_loss(other, test::predict(model, other.table)), 0.3 * entropy_of_constant(0.4));
  }
}

TEST(AnovaClasses, OneClassPredictsItself) {
  AnovaRows rows = test::uniform_rows(200, 2, 24);
  rows.targets.assign(200, 1.0);
  AnovaOptions options;
  options.is_classification = true;
  for (const double log_odds : test::predict(test::fit(rows, options).model, rows.table)) EXPECT_GT(log_odds, 2);
}

TEST(AnovaFit, CensoredTargetsExtendBeyondTheLimit) {
  AnovaRows rows = test::uniform_rows(1000, 1, 25);
  const std::vector<double>& x = rows.table.columns[0].values;
  set_targets(
      rows, [&](std::size_t i) { return 4 * x[i] - 2; }, 0.2, 25);
  for (double& target : rows.targets) target = std::min(target, 1.0);
  AnovaOptions options;
  options.high = 1;
  ColumnTable table;
  table.columns.push_back({false, {0.25, 0.95}});
  const std::vector<double> predictions = test::predict(test::fit(rows, options).model, table);
  EXPECT_NEAR(predictions[0], -1, 0.1);
  EXPECT_GT(predictions[1], 1.0);
}

TEST(AnovaFit, InterruptionEndsTheFit) {
  const AnovaRows rows = planted_rows(300, 0.1, 26);
  AnovaOptions options;
  options.interrupted = [] { return true; };
  const AnovaFit fit = test::fit(rows, options);
  EXPECT_TRUE(fit.was_interrupted);
  EXPECT_TRUE(fit.model.is_finite());
}

}  // namespace
}  // namespace dyad
