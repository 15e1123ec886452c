// Time of the kernels that dominate training and prediction, and of simpler operations that bound them from below.
// bounds.py runs this program and prints their ratios.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include "base/thread_pool.h"
#include "data/row_block.h"
#include "linalg/matrix.h"
#include "recovery/planted_problem.h"
#include "solvers/gauss_newton/objective.h"
#include "solvers/kalman/filter.h"
#include "solvers/moment/moment_sums.h"
#include "solvers/variational/sweeps.h"

namespace {

using dyad::Index;

constexpr int max_threads = 2;

int threads_of(const benchmark::State& state, std::size_t argument) { return static_cast<int>(state.range(argument)); }

/// One block of dense rows with normal features.
template <typename Scalar>
dyad::DenseBlock<Scalar> block_of_rows(Index dim) {
  dyad::PlantedOptions options;
  options.dim = dim;
  options.rank = 1;
  dyad::ThreadPool pool(max_threads);
  dyad::DenseBlock<Scalar> block;
  dyad::PlantedProblem(options).generate(0, dyad::rows_per_block(dim, sizeof(Scalar)), pool, block);
  return block;
}

/// Reports the rate of two matrix products: X (rows x dim) times a dim x width matrix, and X' times a rows x width
/// matrix.
void report(benchmark::State& state, Index rows, Index dim, Index width) {
  state.SetItemsProcessed(state.iterations() * rows);
  state.counters["GFlop/s"] =
      benchmark::Counter(4.0 * static_cast<double>(state.iterations()) * static_cast<double>(rows * dim * width) * 1e-9,
                         benchmark::Counter::kIsRate);
}

/// The moment sums p0, p1 and G of the one-scan solver over one block.
template <typename Scalar>
void moment_sums(benchmark::State& state) {
  const Index dim = state.range(0);
  const Index rank = state.range(1);
  const auto block = block_of_rows<Scalar>(dim);
  dyad::ThreadPool pool(threads_of(state, 2));
  dyad::Random random(1, 0);
  dyad::Model<Scalar> model(dim, rank);
  dyad::as_row_major(model.factors, dim, rank) = dyad::random_orthonormal<Scalar>(random, dim, rank);
  dyad::MomentAccumulator<Scalar> sums(pool, model, dyad::as_row_major(model.factors, dim, rank));
  const auto rows = block.view();
  for (auto _ : state) sums.add(rows);
  report(state, rows.count(), dim, rank + 1);
}

void gemm(CBLAS_TRANSPOSE transpose, int m, int n, int k, const float* A, int lda, const float* B, float beta,
          float* C) {
  cblas_sgemm(CblasRowMajor, transpose, CblasNoTrans, m, n, k, 1, A, lda, B, n, beta, C, n);
}
void gemm(CBLAS_TRANSPOSE transpose, int m, int n, int k, const double* A, int lda, const double* B, double beta,
          double* C) {
  cblas_dgemm(CblasRowMajor, transpose, CblasNoTrans, m, n, k, 1, A, lda, B, n, beta, C, n);
}

/// Lower bound of moment_sums: only the two matrix products X B and X' C of the same shapes, by OpenBLAS.
template <typename Scalar>
void two_matrix_products(benchmark::State& state) {
  const Index dim = state.range(0);
  const Index width = state.range(1) + 1;
  const auto block = block_of_rows<Scalar>(dim);
  const auto rows = block.view();
  const int threads = threads_of(state, 2);
  dyad::ThreadPool pool(threads);
  dyad::Random random(1, 0);
  const auto B = dyad::random_normal<Scalar>(random, dim, width);
  const auto workers = static_cast<std::size_t>(threads);
  std::vector<dyad::RowMajorMatrix<Scalar>> projected(workers, dyad::RowMajorMatrix<Scalar>(rows.count(), width));
  std::vector<dyad::RowMajorMatrix<Scalar>> summed(workers, dyad::RowMajorMatrix<Scalar>::Zero(dim, width));
  openblas_set_num_threads(1);
  for (auto _ : state) {
    pool.split(rows.count(), [&](int worker, dyad::IndexRange share) {
      const auto w = static_cast<std::size_t>(worker);
      const auto n = static_cast<int>(share.count);
      const auto d = static_cast<int>(dim);
      const auto k = static_cast<int>(width);
      gemm(CblasNoTrans, n, k, d, rows.row(share.first), d, B.data(), 0, projected[w].data());
      gemm(CblasTrans, d, k, n, rows.row(share.first), d, projected[w].data(), 1, summed[w].data());
    });
  }
  report(state, rows.count(), dim, width);
}

/// Generation of the rows of a planted problem, which takes most of the time of `dyad recover`.
void planted_rows(benchmark::State& state) {
  dyad::PlantedOptions options;
  options.dim = state.range(0);
  options.rank = 3;
  const dyad::PlantedProblem problem(options);
  dyad::ThreadPool pool(threads_of(state, 1));
  dyad::DenseBlock<double> block;
  const Index rows = dyad::rows_per_block(options.dim, sizeof(double));
  for (auto _ : state) problem.generate(0, rows, pool, block);
  state.SetItemsProcessed(state.iterations() * rows);
}

/// A filter that contains all features, so that learning does not add any.
template <typename Scalar>
dyad::KalmanFilter<Scalar> filter_for(Index dim, Index rank, dyad::Diagonal diagonal) {
  dyad::KalmanOptions options;
  options.shape.dim = dim;
  options.shape.rank = rank;
  options.shape.diagonal = diagonal;
  dyad::KalmanFilter<Scalar> filter(options, {1, 0.1, 0.1, 0.01}, 1);
  for (Index j = 0; j < dim; ++j) filter.add_feature(j, 1);
  return filter;
}

/// Reports the bytes of parameters and variances that the rows read and write.
template <typename Scalar>
void report_bytes(benchmark::State& state, Index rows, double features_of_row, Index rank) {
  const double bytes = features_of_row * 2 * static_cast<double>(2 * rank + 4) * sizeof(Scalar);
  state.SetItemsProcessed(state.iterations() * rows);
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(rows) * bytes * 1e-9, benchmark::Counter::kIsRate);
}

/// Rows with one of 100,000 users and one of 100,000 movies, with a skewed distribution: a tenth of the users
/// has 46% of the rows, and a tenth of the movies too.
struct Ratings {
  static constexpr Index levels = 100'000;
  static constexpr Index rows = 200'000;
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;

  Ratings() {
    dyad::Random random(1, 0);
    for (Index i = 0; i < rows; ++i) {
      for (Index side = 0; side < 2; ++side)
        columns.push_back(
            static_cast<std::int32_t>(side * levels + static_cast<Index>(std::pow(random.uniform(), 3) * levels)));
      offsets.push_back(static_cast<Index>(columns.size()));
    }
  }
};

/// One pass of the Kalman filter over the ratings.
template <typename Scalar>
void kalman_sparse(benchmark::State& state) {
  const Ratings ratings;
  const std::vector<Scalar> ones(ratings.columns.size(), 1);
  std::vector<Scalar> targets(Ratings::rows);
  dyad::Random random(2, 0);
  for (Scalar& y : targets) y = static_cast<Scalar>(random.normal());
  const auto rows = dyad::Rows<Scalar>::sparse(ratings.offsets, ratings.columns, ones, 2 * Ratings::levels, targets);
  auto filter = filter_for<Scalar>(2 * Ratings::levels, state.range(0), dyad::Diagonal::zero);
  std::vector<Scalar> predictions(Ratings::rows);
  for (auto _ : state) filter.learn(rows, predictions);
  report_bytes<Scalar>(state, Ratings::rows, 2, state.range(0));
}

/// Lower bound of kalman_sparse: reads and writes one record of 2k + 6 numbers for each of the same features in the
/// same order. A record of the filter has 2k + 5 numbers (parameters, variances and scale) and is padded to full cache
/// lines.
template <typename Scalar>
void read_write_sparse(benchmark::State& state) {
  const Ratings ratings;
  const Index stride = 2 * state.range(0) + 6;
  std::vector<Scalar> values(static_cast<std::size_t>(2 * Ratings::levels * stride), 1);
  for (auto _ : state)
    for (const std::int32_t column : ratings.columns) {
      Scalar* feature = values.data() + column * stride;
      for (Index i = 0; i < stride; ++i) feature[i] += Scalar(1);
      benchmark::ClobberMemory();
    }
  report_bytes<Scalar>(state, Ratings::rows, 2, state.range(0));
}

/// One variational sweep over the ratings, which updates every feature once.
template <typename Scalar>
void variational_sweep(benchmark::State& state) {
  const Ratings ratings;
  const Index rank = state.range(0);
  const Index dim = 2 * Ratings::levels;
  const std::vector<Scalar> ones(ratings.columns.size(), 1);
  std::vector<Scalar> targets(Ratings::rows);
  dyad::Random random(2, 0);
  for (Scalar& y : targets) y = static_cast<Scalar>(random.normal());
  const auto rows = dyad::Rows<Scalar>::sparse(ratings.offsets, ratings.columns, ones, dim, targets);
  const auto start = filter_for<Scalar>(dim, rank, dyad::Diagonal::zero).posterior();
  dyad::ThreadPool pool(threads_of(state, 1));
  dyad::VariationalSweeps<Scalar> sweeps(rows, dyad::make_likelihood(dyad::Task::regression), start, pool);
  for (auto _ : state) sweeps.sweep();
  state.SetItemsProcessed(state.iterations() * Ratings::rows);
}

/// Predictions of the ratings, split over the threads as in `predict`.
void prediction(benchmark::State& state) {
  const Ratings ratings;
  const Index rank = state.range(0);
  const Index dim = 2 * Ratings::levels;
  const std::vector<double> ones(ratings.columns.size(), 1);
  const auto rows = dyad::Rows<double>::sparse(ratings.offsets, ratings.columns, ones, dim);
  dyad::Random random(1, 0);
  dyad::Model<double> model(dim, rank);
  for (double& value : model.factors) value = random.normal();
  for (double& value : model.weights) value = random.normal();
  dyad::ThreadPool pool(threads_of(state, 1));
  std::vector<double> values(Ratings::rows);
  for (auto _ : state)
    pool.split(Ratings::rows, [&](int, dyad::IndexRange share) {
      model.predict(
          rows.slice(share.first, share.count),
          std::span(values).subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.count)));
    });
  state.SetItemsProcessed(state.iterations() * Ratings::rows);
}

/// For each row, sums `count` values of each of its features.
void read_feature_values(benchmark::State& state, Index count) {
  const Ratings ratings;
  const std::vector<double> values(static_cast<std::size_t>(2 * Ratings::levels * count), 1);
  dyad::ThreadPool pool(threads_of(state, 1));
  for (auto _ : state)
    pool.split(Ratings::rows, [&](int, dyad::IndexRange share) {
      double sum = 0;
      for (Index e = 2 * share.first; e < 2 * (share.first + share.count); ++e) {
        const double* feature = values.data() + ratings.columns[static_cast<std::size_t>(e)] * count;
        for (Index c = 0; c < count; ++c) sum += feature[c];
      }
      benchmark::DoNotOptimize(sum);
    });
  state.SetItemsProcessed(state.iterations() * Ratings::rows);
}

/// Lower bound of a prediction: reads the factors and the weight of each feature.
void read_factors(benchmark::State& state) { read_feature_values(state, state.range(0) + 1); }

/// Lower bound of a sweep: reads 4 (k + 2) values of each feature of a row, as many as two reads of its k + 2 means and
/// k + 2 variances.
void read_posterior(benchmark::State& state) { read_feature_values(state, 4 * (state.range(0) + 2)); }

/// The curvature product J'HJ t of Gauss-Newton. Its lower bound is one product of twice the width and one of the
/// width, 1.5 times two_matrix_products.
template <typename Scalar>
void newton_product(benchmark::State& state) {
  const Index dim = state.range(0);
  const Index rank = state.range(1);
  const auto block = block_of_rows<Scalar>(dim);
  dyad::ThreadPool pool(threads_of(state, 2));
  dyad::Random random(1, 0);
  dyad::NewtonOptions options;
  options.shape.rank = rank;
  dyad::SignedFactors<double> parameters;
  parameters.weights = dyad::random_normal<double>(random, dim, 1);
  parameters.A = dyad::random_normal<double>(random, dim, rank);
  parameters.signs = dyad::alternating_signs<double>(rank);
  dyad::Objective objective(block.view(), options, pool);
  objective.evaluate_at(parameters);
  const dyad::ParameterVector t = objective.negative_gradient();
  for (auto _ : state) benchmark::DoNotOptimize(objective.curvature_product(t).intercept);
  state.SetItemsProcessed(state.iterations() * block.view().count());
  state.counters["GFlop/s"] =
      benchmark::Counter(6.0 * static_cast<double>(state.iterations()) *
                             static_cast<double>(block.view().count() * dim * (rank + 1)) * 1e-9,
                         benchmark::Counter::kIsRate);
}

/// One pass of the Kalman filter over a dense block. Argument 2: 0 for a tied diagonal, 1 for a free one.
template <typename Scalar>
void kalman_dense(benchmark::State& state) {
  const Index dim = state.range(0);
  const auto block = block_of_rows<Scalar>(dim);
  const auto diagonal = state.range(2) == 0 ? dyad::Diagonal::tied : dyad::Diagonal::free;
  auto filter = filter_for<Scalar>(dim, state.range(1), diagonal);
  const auto rows = block.view();
  std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
  for (auto _ : state) filter.learn(rows, predictions);
  report_bytes<Scalar>(state, rows.count(), static_cast<double>(dim), state.range(1));
}

/// Lower bound of kalman_dense: reads and writes all parameters and variances once per row.
template <typename Scalar>
void read_write_dense(benchmark::State& state) {
  const Index dim = state.range(0);
  std::vector<Scalar> values(static_cast<std::size_t>(dim * (2 * state.range(1) + 4)), 1);
  constexpr Index rows = 100;
  for (auto _ : state)
    for (Index row = 0; row < rows; ++row) {
      for (Scalar& value : values) value += Scalar(1);
      benchmark::ClobberMemory();
    }
  report_bytes<Scalar>(state, rows, static_cast<double>(dim), state.range(1));
}

/// Arguments of the dense kernels.
void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseRealTime()->ArgNames({"d", "k", "threads"});
  for (const int threads : {1, max_threads}) {
    benchmark->Args({100, 3, threads});
    for (const int rank : {8, 16, 32}) benchmark->Args({1024, rank, threads});
  }
}

/// Arguments of the sparse kernels with threads.
void ranks(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseRealTime()->ArgNames({"k", "threads"});
  for (const int threads : {1, max_threads})
    for (const int rank : {8, 16, 32}) benchmark->Args({rank, threads});
}

BENCHMARK(moment_sums<float>)->Apply(shapes);
BENCHMARK(two_matrix_products<float>)->Apply(shapes);
BENCHMARK(moment_sums<double>)->Apply(shapes);
BENCHMARK(two_matrix_products<double>)->Apply(shapes);
BENCHMARK(newton_product<double>)->Apply(shapes);
BENCHMARK(prediction)->Apply(ranks);
BENCHMARK(read_factors)->Apply(ranks);
BENCHMARK(variational_sweep<double>)->Apply(ranks);
BENCHMARK(read_posterior)->Apply(ranks);
BENCHMARK(kalman_sparse<float>)->ArgName("k")->Arg(8)->Arg(16);
BENCHMARK(kalman_sparse<double>)->ArgName("k")->Arg(8)->Arg(16);
BENCHMARK(read_write_sparse<float>)->ArgName("k")->Arg(8)->Arg(16);
BENCHMARK(read_write_sparse<double>)->ArgName("k")->Arg(8)->Arg(16);
BENCHMARK(kalman_dense<float>)->ArgNames({"d", "k", "free"})->Args({1000, 10, 0})->Args({1000, 10, 1});
BENCHMARK(kalman_dense<double>)->ArgNames({"d", "k", "free"})->Args({1000, 10, 0})->Args({1000, 10, 1});
BENCHMARK(read_write_dense<float>)->ArgNames({"d", "k"})->Args({1000, 10});
BENCHMARK(read_write_dense<double>)->ArgNames({"d", "k"})->Args({1000, 10});
BENCHMARK(planted_rows)->UseRealTime()->ArgNames({"d", "threads"})->Args({100, 1})->Args({100, 2})->Args({1000, 2});

}  // namespace
