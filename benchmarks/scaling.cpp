// Scaling of the kernels with rows, features, rank, non-zeros and threads. The exponent is the slope of the regression
// of log time on the logarithm of the size: 1 is linear, 0 is constant.
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/thread_pool.h"
#include "data/row_block.h"
#include "linalg/matrix.h"
#include "recovery/planted_problem.h"
#include "solvers/gauss_newton/objective.h"
#include "solvers/kalman/filter.h"
#include "solvers/moment/moment_sums.h"
#include "solvers/variational/sweeps.h"

namespace dyad {
namespace {

struct Size {
  Index rows = 0;
  Index dim = 0;
  Index rank = 0;
  Index entries = 0;  ///< non-zeros of a sparse row
  int threads = 1;
};

/// Shortest time of several runs.
double seconds_of(const std::function<void()>& work) {
  constexpr int runs = 7;
  double seconds = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

/// Rows of one-hot categories: `entries` columns with dim / entries categories each.
struct SparseRows {
  explicit SparseRows(const Size& size) : dim(size.dim) {
    Random random(1, 0);
    const Index categories = size.dim / size.entries;
    for (Index i = 0; i < size.rows; ++i) {
      for (Index e = 0; e < size.entries; ++e)
        columns.push_back(static_cast<std::int32_t>(
            e * categories + static_cast<Index>(random.uniform() * static_cast<double>(categories))));
      offsets.push_back(static_cast<Index>(columns.size()));
      targets.push_back(random.normal());
    }
    values.assign(columns.size(), 1.0);
  }
  [[nodiscard]] Rows<double> view() const { return Rows<double>::sparse(offsets, columns, values, dim, targets); }

  Index dim;
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  std::vector<double> targets;
};

KalmanFilter<double> filter_of(const Size& size) {
  KalmanOptions options;
  options.shape.dim = size.dim;
  options.shape.rank = size.rank;
  options.shape.diagonal = Diagonal::zero;
  KalmanFilter<double> filter(options, {1, 0.1, 0.1, 0.01}, 1);
  for (Index j = 0; j < size.dim; ++j) filter.add_feature(j, 1);
  return filter;
}

double one_pass(const Size& size) {
  const SparseRows rows(size);
  KalmanFilter<double> filter = filter_of(size);
  std::vector<double> predictions(rows.targets.size());
  return seconds_of([&] { filter.learn(rows.view(), predictions); });
}

double sweep(const Size& size) {
  const SparseRows rows(size);
  ThreadPool pool(size.threads);
  VariationalSweeps<double> sweeps(rows.view(), make_likelihood(Task::regression), filter_of(size).posterior(), pool);
  return seconds_of([&] { sweeps.sweep(); });
}

double prediction(const Size& size) {
  const SparseRows rows(size);
  Model<double> model(size.dim, size.rank);
  Random random(1, 0);
  for (double& value : model.factors) value = random.normal();
  ThreadPool pool(size.threads);
  std::vector<double> values(rows.targets.size());
  return seconds_of([&] {
    pool.split(size.rows, [&](int, IndexRange share) {
      model.predict(
          rows.view().slice(share.first, share.count),
          std::span(values).subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.count)));
    });
  });
}

DenseBlock<double> dense_rows(const Size& size) {
  PlantedOptions options;
  options.dim = size.dim;
  options.rank = 1;
  ThreadPool pool(2);
  DenseBlock<double> block;
  PlantedProblem(options).generate(0, size.rows, pool, block);
  return block;
}

double moments(const Size& size) {
  const auto block = dense_rows(size);
  ThreadPool pool(size.threads);
  Random random(1, 0);
  Model<double> model(size.dim, size.rank);
  as_row_major(model.factors, size.dim, size.rank) = random_orthonormal<double>(random, size.dim, size.rank);
  MomentAccumulator<double> sums(pool, model, as_row_major(model.factors, size.dim, size.rank));
  return seconds_of([&] { sums.add(block.view()); });
}

double newton(const Size& size) {
  const auto block = dense_rows(size);
  ThreadPool pool(size.threads);
  Random random(1, 0);
  NewtonOptions options;
  options.shape.rank = size.rank;
  SignedFactors<double> parameters;
  parameters.weights = random_normal<double>(random, size.dim, 1);
  parameters.A = random_normal<double>(random, size.dim, size.rank);
  parameters.signs = alternating_signs<double>(size.rank);
  Objective objective(block.view(), options, pool);
  objective.evaluate_at(parameters);
  const ParameterVector t = objective.negative_gradient();
  return seconds_of([&] { (void)objective.curvature_product(t).intercept; });
}

/// Slope of the least-squares line of log y on log x.
double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / static_cast<double>(x.size());
    mean_y += std::log(y[i]) / static_cast<double>(x.size());
  }
  double covariance = 0;
  double variance = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    covariance += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
    variance += std::pow(std::log(x[i]) - mean_x, 2);
  }
  return covariance / variance;
}

struct Kernel {
  std::string name;
  double (*seconds)(const Size&);
  Size base;  ///< from which one dimension at a time is varied
  bool is_sparse;
};

void vary(const Kernel& kernel, const std::string& dimension, const std::vector<Index>& values,
          const std::function<void(Size&, Index)>& set) {
  std::vector<double> x;
  std::vector<double> y;
  std::string shown;
  for (const Index value : values) {
    Size size = kernel.base;
    set(size, value);
    x.push_back(static_cast<double>(value));
    y.push_back(kernel.seconds(size));
    shown += fmt::format(" {}: {:.2f}", value, 1e3 * y.back());
  }
  fmt::print("{:<16} {:<10} {:>8.2f}  {}\n", kernel.name, dimension, log_slope(x, y), shown);
  std::fflush(stdout);
}

void run() {
  const Size sparse{100'000, 20'000, 16, 2, 1};
  const Size dense{2000, 512, 16, 0, 1};
  const std::vector<Kernel> kernels{{"one pass", one_pass, sparse, true},
                                    {"sweep", sweep, sparse, true},
                                    {"prediction", prediction, sparse, true},
                                    {"moment sums", moments, dense, false},
                                    {"newton product", newton, dense, false}};
  fmt::print("{:<16} {:<10} {:>8}  size: milliseconds\n", "kernel", "varied", "exponent");
  for (const Kernel& kernel : kernels) {
    const Index rows = kernel.base.rows;
    vary(kernel, "rows", {rows / 2, rows, 2 * rows, 4 * rows}, [](Size& size, Index value) { size.rows = value; });
    if (kernel.is_sparse)
      vary(kernel, "non-zeros", {4, 8, 16, 32}, [](Size& size, Index value) { size.entries = value; });
    if (kernel.is_sparse)
      vary(kernel, "features", {5000, 20'000, 80'000, 320'000}, [](Size& size, Index value) { size.dim = value; });
    else
      vary(kernel, "features", {256, 512, 1024, 2048}, [](Size& size, Index value) { size.dim = value; });
    vary(kernel, "rank", {8, 16, 32, 64}, [](Size& size, Index value) { size.rank = value; });
    if (kernel.seconds != one_pass)
      vary(kernel, "threads", {1, 2}, [](Size& size, Index value) { size.threads = static_cast<int>(value); });
  }
}

}  // namespace
}  // namespace dyad

int main() { dyad::run(); }
