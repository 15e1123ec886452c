#include "training/one_pass/filter_selection.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using Origin = FilterSelection<double>::Origin;

KalmanFilter<double> filter_with_weight_variance(double weights) {
  KalmanOptions options;
  options.shape.dim = 4;
  options.shape.rank = 1;
  options.shape.diagonal = Diagonal::zero;
  KalmanFilter<double> filter(options, {1, weights, 1, 1e-6}, 0.5);
  for (Index j = 0; j < 4; ++j) filter.add_feature(j, 1);
  return filter;
}

test::OwnedRows<double> linear_rows(Index count) {
  auto rows = test::random_rows<double>(count, 4, 1);
  Random random(2, 0);
  for (Index i = 0; i < count; ++i)
    rows.targets[static_cast<std::size_t>(i)] = rows.X.row(i).sum() + 0.1 * random.normal();
  return rows;
}

TEST(FilterSelection, PromotesTheBetterCandidateAndDropsTheOthers) {
  ThreadPool pool(2);
  FilterSelection<double> selection(pool);
  selection.add(filter_with_weight_variance(1e-9), Origin::random);
  selection.add(filter_with_weight_variance(1), Origin::phase_search);
  selection.add(filter_with_weight_variance(1e-8), Origin::random);
  const auto rows = linear_rows(3000);
  std::vector<double> predictions(100);
  for (Index first = 0; first < 3000; first += 100) {
    selection.learn(rows.dense().slice(first, 100), predictions);
    selection.select();
  }
  EXPECT_EQ(selection.best_origin(), Origin::phase_search);
  EXPECT_EQ(selection.count(), 1);
}

TEST(FilterSelection, KeepsThePreviousBestCandidate) {
  ThreadPool pool(1);
  FilterSelection<double> selection(pool);
  selection.add(filter_with_weight_variance(1e-9), Origin::random);
  selection.add(filter_with_weight_variance(1), Origin::phase_search);
  const auto rows = linear_rows(200);
  std::vector<double> predictions(200);
  selection.learn(rows.dense(), predictions);
  selection.select();
  EXPECT_EQ(selection.best_origin(), Origin::phase_search);
  EXPECT_EQ(selection.count(Origin::random), 1);
  selection.select();
  EXPECT_EQ(selection.best_origin(), Origin::phase_search) << "the previous best candidate must not be promoted again";
}

TEST(FilterSelection, ContinuesFromItsArchive) {
  ThreadPool pool(2);
  FilterSelection<double> selection(pool);
  for (const double weights : {0.1, 1.0, 10.0}) selection.add(filter_with_weight_variance(weights), Origin::random);
  const auto rows = linear_rows(400);
  std::vector<double> predictions(200);
  selection.learn(rows.dense().slice(0, 200), predictions);
  Archive saved;
  const auto make = [] { return filter_with_weight_variance(1); };
  selection.archive(saved, make);
  FilterSelection<double> other(pool);
  Archive loaded(saved.arrays());
  other.archive(loaded, make);
  std::vector<double> same(200);
  for (FilterSelection<double>* each : {&selection, &other}) each->select();
  selection.learn(rows.dense().slice(200, 200), predictions);
  other.learn(rows.dense().slice(200, 200), same);
  EXPECT_EQ(predictions, same);
  EXPECT_EQ(selection.count(), other.count());
}

}  // namespace
}  // namespace dyad
