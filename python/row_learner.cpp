#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dyad/learner.h>

#include "support.h"

using namespace nanobind::literals;

namespace dyad::python {
namespace {

/// Learner<double> of one row per call. The number of features starts at the rank and grows if a row has a larger
/// column. Each growth at least doubles it, so that the amortized cost per feature is constant. Not thread-safe.
class RowLearner {
 public:
  RowLearner(const std::string& task, Index rank, double half_life,
             const std::optional<std::pair<double, double>>& range, double memory, std::uint64_t seed)
      : dim_(rank), learner_(options(task, rank, half_life, range, memory, seed)) {}

  void learn(const std::vector<std::int32_t>& columns, const std::vector<double>& values, double target) {
    check_row(columns, values);
    if (!columns.empty() && columns.back() >= dim_) {
      dim_ = std::max<Index>(2 * dim_, columns.back() + 1);
      learner_.grow(dim_);
    }
    learner_.learn(row(columns, values, {&target, 1}));
  }

  /// Returns the prediction and its standard deviation. `unseen`: number of features of the row that have no column.
  [[nodiscard]] std::pair<double, double> predict(std::vector<std::int32_t> columns, std::vector<double> values,
                                                  Index unseen) const {
    check_row(columns, values);
    while (!columns.empty() && columns.back() >= dim_) {
      columns.pop_back();
      values.pop_back();
      ++unseen;
    }
    double value = 0;
    double deviation = 0;
    learner_.predict(row(columns, values, {}), {&value, 1}, {&deviation, 1}, {&unseen, 1});
    return {value, deviation};
  }

  [[nodiscard]] nb::bytes to_bytes() { return python::to_bytes(learner_.to_bytes()); }
  static RowLearner from_bytes(const nb::bytes& bytes) { return RowLearner(to_string(bytes)); }

  [[nodiscard]] Index rows() const { return learner_.rows(); }
  [[nodiscard]] double noise() const { return learner_.noise(); }
  [[nodiscard]] std::string origin() const { return learner_.origin(); }

 private:
  explicit RowLearner(const std::string& bytes) : learner_(Learner<double>::from_bytes(bytes)) {
    dim_ = learner_.dim();
  }

  static void check_row(const std::vector<std::int32_t>& columns, const std::vector<double>& values) {
    if (columns.size() != values.size())
      throw std::invalid_argument(
          fmt::format("columns and values must have the same length, got {} and {}", columns.size(), values.size()));
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i] < 0 || columns[i] == std::numeric_limits<std::int32_t>::max() ||
          (i > 0 && columns[i] <= columns[i - 1]))
        throw std::invalid_argument(fmt::format(
            "columns must be strictly increasing and in [0, 2^31 - 1), got {} at position {}", columns[i], i));
  }

  static LearnerOptions options(const std::string& task, Index rank, double half_life,
                                const std::optional<std::pair<double, double>>& range, double memory,
                                std::uint64_t seed) {
    LearnerOptions options;
    options.shape.dim = options.shape.rank = rank;
    options.task = *parse_choice<Task>(task, task_names, "task");
    options.shape.diagonal = Diagonal::free;
    options.half_life = half_life;
    options.range = range;
    options.memory = memory;
    options.seed = seed;
    return options;
  }

  [[nodiscard]] Rows<double> row(const std::vector<std::int32_t>& columns, const std::vector<double>& values,
                                 std::span<const double> target) const {
    offsets_ = {0, static_cast<Index>(columns.size())};
    return Rows<double>::sparse(offsets_, columns, values, dim_, target);
  }

  Index dim_ = 0;  ///< number of features of learner_
  Learner<double> learner_;
  mutable std::array<Index, 2> offsets_{};  ///< array to which the last result of row() refers
};

}  // namespace

void bind_row_learner(nb::module_& module) {
  nb::class_<RowLearner>(module, "Learner")
      .def(nb::init<const std::string&, Index, double, const std::optional<std::pair<double, double>>&, double,
                    std::uint64_t>(),
           "task"_a, "rank"_a, "half_life"_a, "range"_a.none(), "memory"_a, "seed"_a)
      .def("learn", &RowLearner::learn, "columns"_a, "values"_a, "target"_a)
      .def("predict", &RowLearner::predict, "columns"_a, "values"_a, "unseen"_a = 0)
      .def("rows", &RowLearner::rows)
      .def("noise", &RowLearner::noise)
      .def("origin", &RowLearner::origin)
      .def("to_bytes", &RowLearner::to_bytes)
      .def_static("from_bytes", &RowLearner::from_bytes, "learner"_a);
}

}  // namespace dyad::python
