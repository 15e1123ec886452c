// The hot kernels beside their bounds, in one run: `make bench`.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include "base/linear_algebra.h"
#include "base/workers.h"
#include "moment/sums.h"
#include "rows/block.h"
#include "source/planted.h"

namespace {

using dyad::Index;

constexpr int threads = 2;

template <typename Scalar>
dyad::DenseBlock<Scalar> block_of_rows(Index dim) {
  dyad::PlantedOptions options;
  options.dim = dim;
  options.rank = 1;
  dyad::Workers workers(threads);
  dyad::DenseBlock<Scalar> block;
  dyad::PlantedProblem(options).read(0, dyad::block_rows(dim, sizeof(Scalar)), workers, block);
  return block;
}

void report(benchmark::State& state, Index rows, Index dim, Index width) {
  state.SetItemsProcessed(state.iterations() * rows);
  state.counters["GFlop/s"] =
      benchmark::Counter(4.0 * static_cast<double>(state.iterations()) * static_cast<double>(rows * dim * width) * 1e-9,
                         benchmark::Counter::kIsRate);
}

/// p0, p1 and G of one block, with everything that the solver does for a row.
template <typename Scalar>
void moment_sums(benchmark::State& state) {
  const Index dim = state.range(0);
  const Index rank = state.range(1);
  const auto block = block_of_rows<Scalar>(dim);
  dyad::Workers workers(threads);
  dyad::Random random(1, 0);
  dyad::Model<Scalar> model(dim, rank);
  dyad::as_tall(model.factors, dim, rank) = dyad::random_orthonormal<Scalar>(random, dim, rank);
  dyad::MomentAccumulator<Scalar> sums(workers, model, dyad::as_tall(model.factors, dim, rank));
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

/// The bound: the two bare matrix products X B and X' C of the same shapes on the same rows.
template <typename Scalar>
void two_bare_products(benchmark::State& state) {
  const Index dim = state.range(0);
  const Index width = state.range(1) + 1;
  const auto block = block_of_rows<Scalar>(dim);
  const auto rows = block.view();
  dyad::Workers workers(threads);
  dyad::Random random(1, 0);
  const auto B = dyad::random_normal<Scalar>(random, dim, width);
  std::vector<dyad::Tall<Scalar>> projected(threads, dyad::Tall<Scalar>(rows.count(), width));
  std::vector<dyad::Tall<Scalar>> summed(threads, dyad::Tall<Scalar>::Zero(dim, width));
  openblas_set_num_threads(1);
  for (auto _ : state) {
    workers.split(rows.count(), [&](int worker, dyad::Share share) {
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

/// How fast a planted problem makes its rows: what `dyad recover` spends most of its time on.
void planted_rows(benchmark::State& state) {
  dyad::PlantedOptions options;
  options.dim = state.range(0);
  options.rank = 3;
  const dyad::PlantedProblem problem(options);
  dyad::Workers workers(threads);
  dyad::DenseBlock<double> block;
  const Index rows = dyad::block_rows(options.dim, sizeof(double));
  for (auto _ : state) problem.read(0, rows, workers, block);
  state.SetItemsProcessed(state.iterations() * rows);
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseRealTime()->ArgNames({"d", "k"})->Args({100, 3})->Args({1024, 8})->Args({1024, 16})->Args({1024, 32});
}

BENCHMARK(moment_sums<float>)->Apply(shapes);
BENCHMARK(two_bare_products<float>)->Apply(shapes);
BENCHMARK(moment_sums<double>)->Apply(shapes);
BENCHMARK(two_bare_products<double>)->Apply(shapes);
BENCHMARK(planted_rows)->UseRealTime()->ArgName("d")->Arg(100)->Arg(1000);

}  // namespace
