// Extension module dyad._testing: single solver steps that the public API does not expose, for
// python/tests/test_reference_gauss_newton.py. Built with the tests, not installed.
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/thread_pool.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/levenberg_marquardt.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace dyad::python {
namespace {

using Numbers = std::vector<double>;

/// Rows, loss and ridge. Matrices are row-major.
struct Problem {
  Numbers values;
  Numbers targets;
  Numbers weights;
  bool sparse = false;  ///< pass the rows as compressed sparse rows
  bool is_class = false;
  /// Bounds at which targets are censored.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool linear = true;
  bool intercept = true;
  double ridge_weights = 0;
  double ridge_factors = 0;
};

/// SignedFactors in the types of the binding.
struct Parameters {
  double intercept = 0;
  Numbers weights;
  Numbers squares;  ///< zeros unless `diagonal` is "free"
  Numbers A;        ///< row-major
  Numbers signs;
  std::string diagonal = "tied";
  Index left_dim = 0;
};

/// Owns the arrays that sparse rows refer to.
struct SparseRows {
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  Numbers values;

  SparseRows(const Numbers& dense, Index dim) {
    for (std::size_t i = 0; i < dense.size(); ++i) {
      if (dense[i] != 0) {
        columns.push_back(static_cast<std::int32_t>(static_cast<Index>(i) % dim));
        values.push_back(dense[i]);
      }
      if (static_cast<Index>(i + 1) % dim == 0) offsets.push_back(static_cast<Index>(values.size()));
    }
  }
};

SignedFactors<double> to_signed_factors(const Parameters& given) {
  const auto dim = static_cast<Index>(given.weights.size());
  const auto rank = static_cast<Index>(given.signs.size());
  SignedFactors<double> result;
  result.left_dim = given.left_dim;
  result.diagonal = given.diagonal == "tied"   ? Diagonal::tied
                    : given.diagonal == "zero" ? Diagonal::zero
                                               : Diagonal::free;
  result.intercept = given.intercept;
  result.weights = Eigen::Map<const Vector<double>>(given.weights.data(), dim);
  if (result.diagonal == Diagonal::free) result.squares = Eigen::Map<const Vector<double>>(given.squares.data(), dim);
  result.A = Eigen::Map<const RowMajorMatrix<double>>(given.A.data(), dim, rank);
  result.signs = Eigen::Map<const Vector<double>>(given.signs.data(), rank);
  return result;
}

/// Takes one Levenberg-Marquardt step from `start` with the initial damping. The linear equations are solved up to
/// rounding errors. Returns the parameters and the objective after the step; if the step does not decrease the
/// objective, those of `start`.
nb::tuple gauss_newton_step(const Problem& problem, const Parameters& start) {
  const auto dim = static_cast<Index>(start.weights.size());
  const SparseRows sparse(problem.values, dim);
  const Rows<double> rows = (problem.sparse ? Rows<double>::sparse(std::span<const Index>(sparse.offsets),
                                                                   sparse.columns, sparse.values, dim, problem.targets)
                                            : Rows<double>::dense(problem.values, dim, problem.targets))
                                .weighted(problem.weights);
  const SignedFactors<double> from = to_signed_factors(start);
  NewtonOptions options;
  options.shape.left_dim = from.left_dim;
  options.shape.rank = from.rank();
  options.shape.linear = problem.linear;
  options.shape.intercept = problem.intercept;
  options.shape.diagonal = from.diagonal;
  options.likelihood =
      make_likelihood(problem.is_class ? Task::classification : Task::regression, {problem.low, problem.high});
  options.ridge = {problem.ridge_weights, problem.ridge_factors};
  options.exact_steps = true;
  ThreadPool pool(1);
  LevenbergMarquardt solver(rows, options, pool);
  solver.start(from);
  (void)solver.step();
  const SignedFactors<double>& to = solver.parameters();
  Parameters result = start;
  result.intercept = to.intercept;
  result.weights.assign(to.weights.begin(), to.weights.end());
  if (to.squares.size() > 0) result.squares.assign(to.squares.begin(), to.squares.end());
  result.A.assign(to.A.data(), to.A.data() + to.A.size());
  return nb::make_tuple(result, solver.objective());
}

}  // namespace

NB_MODULE(_testing, module) {
  nb::class_<Problem>(module, "Problem")
      .def(nb::init<>())
      .def_rw("values", &Problem::values)
      .def_rw("targets", &Problem::targets)
      .def_rw("weights", &Problem::weights)
      .def_rw("sparse", &Problem::sparse)
      .def_rw("is_class", &Problem::is_class)
      .def_rw("low", &Problem::low)
      .def_rw("high", &Problem::high)
      .def_rw("linear", &Problem::linear)
      .def_rw("intercept", &Problem::intercept)
      .def_rw("ridge_weights", &Problem::ridge_weights)
      .def_rw("ridge_factors", &Problem::ridge_factors);
  nb::class_<Parameters>(module, "Parameters")
      .def(nb::init<>())
      .def_rw("intercept", &Parameters::intercept)
      .def_rw("weights", &Parameters::weights)
      .def_rw("squares", &Parameters::squares)
      .def_rw("A", &Parameters::A)
      .def_rw("signs", &Parameters::signs)
      .def_rw("diagonal", &Parameters::diagonal)
      .def_rw("left_dim", &Parameters::left_dim);
  module.def("gauss_newton_step", &gauss_newton_step, "problem"_a, "start"_a);
}

}  // namespace dyad::python
