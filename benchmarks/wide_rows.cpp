// Time of the Kalman filter for rows of many categories, such as click logs, and of simpler operations that bound it
// from below. bounds.py runs this program and prints their ratios.
#include <algorithm>
#include <cmath>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/cache_aligned.h"
#include "base/random.h"
#include "likelihood/likelihood.h"
#include "linalg/simd.h"
#include "solvers/kalman/filter.h"

namespace {

using dyad::Index;

constexpr Index columns = 39;
constexpr Index names = 25'641;  // per column: a million in total
constexpr Index dim = columns * names;
constexpr Index row_count = 100'000;

/// Rows with one of the names of each column. The rank of a name is names u^skew with uniform u: with a skew of 1, all
/// names are equally frequent; with 3, a tenth of the names has 46% of the rows.
struct WideRows {
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> features;

  explicit WideRows(Index skew) {
    dyad::Random random(1, 0);
    for (Index i = 0; i < row_count; ++i) {
      for (Index column = 0; column < columns; ++column) {
        const double share = std::pow(random.uniform(), static_cast<double>(skew));
        features.push_back(
            static_cast<std::int32_t>(column * names + static_cast<Index>(share * static_cast<double>(names))));
      }
      offsets.push_back(static_cast<Index>(features.size()));
    }
  }
};

/// A filter with all features, with one prior group per column, for classes.
template <typename Scalar>
dyad::KalmanFilter<Scalar> make_filter(Index rank) {
  dyad::KalmanOptions options;
  options.shape.dim = dim;
  options.shape.rank = rank;
  options.shape.diagonal = dyad::Diagonal::zero;
  options.entries_per_row = columns;
  options.likelihood = dyad::make_likelihood(dyad::Task::classification);
  const dyad::FilterGroups groups{
      .count = columns, .have_mean = std::vector<bool>(columns, true), .one_feature_per_row = true};
  dyad::KalmanFilter<Scalar> filter(options, dyad::Prior{1, 0.02, 0.02, 0.01, 0}, groups, 1);
  for (Index j = 0; j < dim; ++j) {
    filter.set_group(j, j / names);
    filter.add_feature(j, 1);
  }
  return filter;
}

/// One pass over the rows. Arguments: rank, skew.
template <typename Scalar>
void kalman_wide(benchmark::State& state) {
  const WideRows wide(state.range(1));
  const std::vector<Scalar> ones(wide.features.size(), 1);
  std::vector<Scalar> targets(row_count);
  dyad::Random random(2, 0);
  for (Scalar& y : targets) y = random.uniform() < 0.03 ? Scalar(1) : Scalar(-1);
  const auto rows = dyad::Rows<Scalar>::sparse(wide.offsets, wide.features, ones, dim, targets);
  auto filter = make_filter<Scalar>(state.range(0));
  std::vector<Scalar> predictions(row_count);
  for (auto _ : state) filter.learn(rows, predictions);
  state.SetItemsProcessed(state.iterations() * row_count);
}

/// Lower bound of kalman_wide: reads and writes the 2k + 8 numbers of the records of the same features in the same
/// order, with the same prefetches.
template <typename Scalar>
void read_write_wide(benchmark::State& state) {
  const WideRows wide(state.range(1));
  const Index stride = 2 * state.range(0) + 8;
  dyad::CacheAlignedVector<Scalar> records(static_cast<std::size_t>(dim * stride), Scalar(1));
  const auto record = [&](Index e) {
    return records.data() + static_cast<Index>(wide.features[static_cast<std::size_t>(e)]) * stride;
  };
  constexpr Index prefetch_distance = 2 * columns;  // as in the filter
  for (auto _ : state)
    for (Index e = 0; e < columns * row_count; ++e) {
      if (e + prefetch_distance < columns * row_count) dyad::prefetch_range(record(e + prefetch_distance), stride);
      Scalar* feature = record(e);
      for (Index i = 0; i < stride; i += dyad::SimdVector<Scalar>::count)
        (dyad::SimdVector<Scalar>(feature + i) + dyad::SimdVector<Scalar>(Scalar(1))).store(feature + i);
    }
  state.SetItemsProcessed(state.iterations() * row_count);
  // Each row reads and writes these bytes, unless the records are in a cache.
  state.counters["bytes/row"] = static_cast<double>(2 * columns * stride * static_cast<Index>(sizeof(Scalar)));
}

void ranks_and_skews(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"k", "skew"})->Unit(benchmark::kMillisecond);
  for (const Index rank : {8, 16})
    for (const Index skew : {1, 3}) benchmark->Args({rank, skew});
}

BENCHMARK(kalman_wide<float>)->Apply(ranks_and_skews);
BENCHMARK(kalman_wide<double>)->Apply(ranks_and_skews);
BENCHMARK(read_write_wide<float>)->Apply(ranks_and_skews);
BENCHMARK(read_write_wide<double>)->Apply(ranks_and_skews);

}  // namespace
