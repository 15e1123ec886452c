#include "training/one_pass/filter_selection.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using Origin = FilterSelection<double>::Origin;

KalmanFilter<double> filter_with(double weights) {
  KalmanOptions options;
  options.shape.dim = 4;
  options.shape.rank = 1;
  options.shape.diagonal = Diagonal::zero;
  KalmanFilter<double> filter(options, {1, weights, 1, 1e-6}, 0.5);
  for (Index j = 0; j < 4; ++j) filter.begin(j, 1);
  return filter;
}

test::OwnedRows<double> linear_rows(Index count) {
  auto rows = test::random_rows<double>(count, 4, 1);
  Random random(2, 0);
  for (Index i = 0; i < count; ++i)
    rows.targets[static_cast<std::size_t>(i)] = rows.X.row(i).sum() + 0.1 * random.normal();
  return rows;
}

TEST(FilterSelection, TheBetterOneTakesOverAndTheOthersLeave) {
  ThreadPool pool(2);
  FilterSelection<double> race(pool);
  race.enter(filter_with(1e-9), Origin::nothing);
  race.enter(filter_with(1), Origin::search);
  race.enter(filter_with(1e-8), Origin::nothing);
  const auto rows = linear_rows(3000);
  std::vector<double> predictions(100);
  for (Index first = 0; first < 3000; first += 100) {
    race.learn(rows.dense().slice(first, 100), predictions);
    race.decide();
  }
  EXPECT_EQ(race.champion_origin(), Origin::search);
  EXPECT_EQ(race.count(), 1);
}

TEST(FilterSelection, TheOldChampionIsNotForgottenAtOnce) {
  ThreadPool pool(1);
  FilterSelection<double> race(pool);
  race.enter(filter_with(1e-9), Origin::nothing);
  race.enter(filter_with(1), Origin::search);
  const auto rows = linear_rows(200);
  std::vector<double> predictions(200);
  race.learn(rows.dense(), predictions);
  race.decide();
  EXPECT_EQ(race.champion_origin(), Origin::search);
  EXPECT_EQ(race.count(Origin::nothing), 1);
  race.decide();
  EXPECT_EQ(race.champion_origin(), Origin::search) << "one that was beaten is not better at once";
}

TEST(FilterSelection, GoesOnFromItsArchive) {
  ThreadPool pool(2);
  FilterSelection<double> race(pool);
  for (const double weights : {0.1, 1.0, 10.0}) race.enter(filter_with(weights), Origin::nothing);
  const auto rows = linear_rows(400);
  std::vector<double> predictions(200);
  race.learn(rows.dense().slice(0, 200), predictions);
  Archive saved;
  const auto make = [] { return filter_with(1); };
  race.archive(saved, make);
  FilterSelection<double> other(pool);
  Archive loaded(saved.arrays());
  other.archive(loaded, make);
  std::vector<double> same(200);
  for (FilterSelection<double>* each : {&race, &other}) each->decide();
  race.learn(rows.dense().slice(200, 200), predictions);
  other.learn(rows.dense().slice(200, 200), same);
  EXPECT_EQ(predictions, same);
  EXPECT_EQ(race.count(), other.count());
}

}  // namespace
}  // namespace dyad
