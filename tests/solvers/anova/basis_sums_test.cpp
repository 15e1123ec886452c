#include "solvers/anova/basis/basis_sums.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "solvers/anova/anova_rows.h"
#include "solvers/anova/sums_fit.h"

namespace dyad {
namespace {

using test::AnovaRows;

/// Two numeric columns, one categorical column, and a target with a curve and a product.
AnovaRows mixed_rows(Index count, std::uint64_t seed) {
  AnovaRows rows = test::uniform_rows(count, 2, seed);
  Random random(seed, 2);
  std::vector<double>& levels = rows.add_column(true).values;
  const auto& x = rows.table.columns;
  for (std::size_t i = 0; i < rows.targets.size(); ++i) {
    levels.push_back(std::floor(3 * random.uniform()));
    rows.targets[i] =
        std::sin(6 * x[0].values[i]) + 2 * x[0].values[i] * x[1].values[i] + 0.3 * levels[i] + 0.3 * random.normal();
  }
  return rows;
}

AnovaRows slice(const AnovaRows& rows, Index first, Index count) {
  std::vector<std::size_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), static_cast<std::size_t>(first));
  return test::select_rows(rows, order);
}

/// Sums of the rows, added in this number of parts.
BasisSums sums_of_parts(const AnovaModel& model, const AnovaRows& rows, Index parts, const AnovaOptions& options = {}) {
  BasisSums total(model);
  const Index count = rows.table.count();
  for (Index p = 0; p < parts; ++p) {
    const Index first = p * count / parts;
    const AnovaRows part = slice(rows, first, (p + 1) * count / parts - first);
    BasisSums sums(model);
    sums.add(model, part.table, part.targets, {}, ResponseLink(options), test::pool());
    total.add(sums);
  }
  return total;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  return (as_vector(a) - as_vector(b)).cwiseAbs().maxCoeff();
}

TEST(BasisSums, PartsGiveTheSameModel) {
  const AnovaRows rows = mixed_rows(3000, 1);
  const AnovaFit sample = test::fit(slice(rows, 0, 1000));
  const auto predictions = [&](Index parts) {
    const BasisSums sums = sums_of_parts(sample.model, rows, parts);
    return test::predict(fit_sums(sample.model, sample.prior, sums, {}).model, rows.table);
  };
  const std::vector<double> one = predictions(1);
  for (const Index parts : {3, 7}) EXPECT_LT(largest_difference(predictions(parts), one), 1e-9) << parts;
}

// The blocks of the fit are those of the sums, and the variances of the fit are near a fixed point of REML.
TEST(BasisSums, FitOfSumsAgreesWithFitOfRows) {
  const AnovaRows rows = mixed_rows(3000, 2);
  const AnovaFit fit = test::fit(rows);
  const AnovaFit again = fit_sums(fit.model, fit.prior, sums_of_parts(fit.model, rows, 1), {});
  const std::vector<double> expected = test::predict(fit.model, rows.table);
  EXPECT_LT(test::root_mean_square_difference(test::predict(again.model, rows.table), expected), 0.01);
  EXPECT_NEAR(again.held_out_loss, fit.held_out_loss, 0.01 * fit.held_out_loss);
}

// With functions that are selected on a tenth of the rows, the other rows reduce the error of the fit.
TEST(BasisSums, MoreRowsReduceTheError) {
  const AnovaRows rows = mixed_rows(20000, 3);
  const AnovaRows fresh = mixed_rows(4000, 4);
  const AnovaFit sample = test::fit(slice(rows, 0, 1000));
  const AnovaFit all = fit_sums(sample.model, sample.prior, sums_of_parts(sample.model, rows, 4), {});
  const double sample_error =
      test::root_mean_square_difference(test::predict(sample.model, fresh.table), fresh.targets);
  const double error = test::root_mean_square_difference(test::predict(all.model, fresh.table), fresh.targets);
  EXPECT_LT(error, sample_error);
  EXPECT_LT(error, 1.02 * 0.3);
}

TEST(BasisSums, ClassesAreLinearizedAtTheModel) {
  AnovaRows rows = mixed_rows(4000, 5);
  Random random(5, 3);
  for (double& target : rows.targets) target = random.uniform() < 1 / (1 + std::exp(2 - 2 * target)) ? 1 : -1;
  AnovaOptions options;
  options.is_classification = true;
  const AnovaFit fit = test::fit(rows, options);
  const AnovaFit again = fit_sums(fit.model, fit.prior, sums_of_parts(fit.model, rows, 3, options), options);
  const std::vector<double> expected = test::predict(fit.model, rows.table);
  EXPECT_LT(test::root_mean_square_difference(test::predict(again.model, rows.table), expected), 0.05);
}

TEST(BasisSums, WeightsAreRepetitionCounts) {
  const AnovaRows rows = mixed_rows(500, 6);
  const AnovaFit fit = test::fit(rows);
  const std::vector<double> twice(rows.targets.size(), 2.0);
  BasisSums weighted(fit.model);
  weighted.add(fit.model, rows.table, rows.targets, twice, ResponseLink({}), test::pool());
  BasisSums repeated = sums_of_parts(fit.model, rows, 1);
  repeated.add(sums_of_parts(fit.model, rows, 1));
  EXPECT_LT(largest_difference(test::predict(fit_sums(fit.model, fit.prior, weighted, {}).model, rows.table),
                               test::predict(fit_sums(fit.model, fit.prior, repeated, {}).model, rows.table)),
            1e-9);
}

// Values of magnitude 1e6 are compared with sums in extended precision about the mean. The rows are made in parts, so
// that they need not be stored.
TEST(BasisSums, SumsOfLargeValuesAreAccurate) {
  constexpr Index part_rows = 100000;
  constexpr int parts = 100;
  AnovaModel model;
  model.axes.emplace_back().knots = {1.2e6, 1.5e6, 1.8e6};
  model.axes[0].has_tails = true;
  AnovaBlock& block = model.blocks.emplace_back();
  block.axes = {0};
  block.values.assign(5, 0.0);
  BasisSums total(model);
  using Extended = long double;
  std::array<Extended, 5> means{};
  std::array<std::array<Extended, 5>, 5> products{};
  const auto make_part = [&](int part) {
    AnovaRows rows = test::uniform_rows(part_rows, 1, static_cast<std::uint64_t>(7 + part));
    for (double& x : rows.table.columns[0].values) x = 1e6 * (1 + x);
    std::fill(rows.targets.begin(), rows.targets.end(), 1e6);
    return rows;
  };
  const auto visit_basis = [&](const AnovaRows& rows, auto&& visit) {
    for (const double x : rows.table.columns[0].values) {
      const HatWeights hat = model.axes[0].evaluate(x);
      std::array<Extended, 5> phi{};
      phi[static_cast<std::size_t>(hat.index)] = hat.first;
      if (hat.second != 0) phi[static_cast<std::size_t>(hat.index + 1)] = hat.second;
      visit(phi);
    }
  };
  for (int part = 0; part < parts; ++part) {
    const AnovaRows rows = make_part(part);
    BasisSums sums(model);
    sums.add(model, rows.table, rows.targets, {}, ResponseLink({}), test::pool());
    total.add(sums);
    visit_basis(rows, [&](const std::array<Extended, 5>& phi) {
      for (std::size_t a = 0; a < 5; ++a) means[a] += phi[a] / (Extended{part_rows} * parts);
    });
  }
  for (int part = 0; part < parts; ++part)
    visit_basis(make_part(part), [&](const std::array<Extended, 5>& phi) {
      for (std::size_t a = 0; a < 5; ++a)
        for (std::size_t b = 0; b < 5; ++b) products[a][b] += (phi[a] - means[a]) * (phi[b] - means[b]);
    });
  const std::vector<RowMajorMatrix<double>> identity{RowMajorMatrix<double>::Identity(5, 5)};
  Vector<double> centers;
  const CenteredSums sums = total.project(identity, centers);
  EXPECT_EQ(sums.weight, static_cast<double>(part_rows) * parts);
  for (Index a = 0; a < 5; ++a)
    for (Index b = 0; b < 5; ++b)
      EXPECT_NEAR(sums.H(a, b), static_cast<double>(products[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]),
                  1e-9 * std::sqrt(sums.H(a, a) * sums.H(b, b)));
}

TEST(BasisSums, RoundTripThroughAnArchive) {
  const AnovaRows rows = mixed_rows(800, 8);
  AnovaFit fit = test::fit(rows);
  BasisSums sums = sums_of_parts(fit.model, rows, 1);
  Archive saved;
  archive_functions(saved, fit.model);
  fit.prior.archive(saved, fit.model);
  sums.archive(saved);
  Archive archive(saved.take());
  AnovaFit loaded;
  archive_functions(archive, loaded.model);
  loaded.prior.archive(archive, loaded.model);
  BasisSums loaded_sums(loaded.model);
  loaded_sums.archive(archive);
  EXPECT_EQ(test::predict(loaded.model, rows.table), test::predict(fit.model, rows.table));
  EXPECT_EQ(test::predict(fit_sums(loaded.model, loaded.prior, loaded_sums, {}).model, rows.table),
            test::predict(fit_sums(fit.model, fit.prior, sums, {}).model, rows.table));
}

}  // namespace
}  // namespace dyad
