#include "array_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

#include <dyad/rows.h>

namespace dyad::python {
namespace {

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument(what); }

template <typename Number>
const char* type_name() {
  if constexpr (std::is_same_v<Number, double>) return "float64";
  if constexpr (std::is_same_v<Number, float>) return "float32";
  if constexpr (std::is_same_v<Number, std::int64_t>) return "int64";
  if constexpr (std::is_same_v<Number, std::int32_t>) return "int32";
  return "uint64";
}

template <typename Number>
bool has_type(const AnyArray& array) {
  return array.dtype() == nb::dtype<Number>();
}

template <typename Number>
const Number* aligned_data(const AnyArray& array, const std::string& name) {
  if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Number) != 0)
    fail(fmt::format("{} must be aligned to {} bytes", name, alignof(Number)));
  return static_cast<const Number*>(array.data());
}

void check_one_dimension(const AnyArray& array, const std::string& name) {
  if (array.ndim() != 1) fail(fmt::format("{} must have 1 dimension, got {}", name, array.ndim()));
}

void check_contiguous(const AnyArray& array, const std::string& name) {
  check_one_dimension(array, name);
  if (array.shape(0) > 1 && array.stride(0) != 1) fail(name + " must be contiguous");
}

RealPointer real_data(const AnyArray& array, const std::string& name) {
  if (has_type<double>(array)) return aligned_data<double>(array, name);
  if (has_type<float>(array)) return aligned_data<float>(array, name);
  fail(name + " must have the dtype float64 or float32");
}

IntegerPointer integer_data(const AnyArray& array, const std::string& name) {
  check_contiguous(array, name);
  if (has_type<std::int64_t>(array)) return aligned_data<std::int64_t>(array, name);
  if (has_type<std::int32_t>(array)) return aligned_data<std::int32_t>(array, name);
  fail(name + " must have the dtype int64 or int32");
}

[[noreturn]] void fail_for_value(const std::string& location, double value) {
  fail(
      fmt::format("{} is {:g}; expected a finite number of at most {:g} in magnitude", location, value, max_abs_value));
}

bool is_valid(double value) { return std::abs(value) <= max_abs_value; }

void check_matrix(const MatrixView& matrix, Index rows) {
  // The inner loop runs along the dimension with the smaller stride.
  const bool is_row_major = std::abs(matrix.column_stride) <= std::abs(matrix.row_stride);
  const Index outer = is_row_major ? rows : matrix.columns;
  const Index inner = is_row_major ? matrix.columns : rows;
  const Index outer_stride = is_row_major ? matrix.row_stride : matrix.column_stride;
  const Index inner_stride = is_row_major ? matrix.column_stride : matrix.row_stride;
  std::visit(
      [&](const auto* values) {
        for (Index i = 0; i < outer; ++i)
          for (Index j = 0; j < inner; ++j) {
            const auto value = static_cast<double>(values[i * outer_stride + j * inner_stride]);
            if (!is_valid(value))
              fail_for_value(fmt::format("X[{}, {}]", is_row_major ? i : j, is_row_major ? j : i), value);
          }
      },
      matrix.values);
}

void check_sparse(const SparseView& sparse, Index rows, Index entries) {
  std::visit(
      [&](const auto* offsets, const auto* indices, const auto* values) {
        if (offsets[0] != 0 || static_cast<Index>(offsets[rows]) != entries)
          fail(fmt::format(
              "X.indptr must start at 0 and end at the number of entries, {}; it starts at {} and ends at {}", entries,
              offsets[0], offsets[rows]));
        for (Index i = 0; i < rows; ++i)
          if (offsets[i + 1] < offsets[i] || static_cast<Index>(offsets[i + 1]) > entries)
            fail(fmt::format("X.indptr must not decrease or exceed the number of entries, {}; it does in row {}",
                             entries, i));
        for (Index i = 0; i < rows; ++i) {
          std::int64_t previous = -1;
          for (auto e = static_cast<Index>(offsets[i]); e < static_cast<Index>(offsets[i + 1]); ++e) {
            const auto index = static_cast<std::int64_t>(indices[e]);
            if (index <= previous || index >= sparse.columns)
              fail(fmt::format(
                  "X.indices must be strictly increasing in each row and in [0, {}); row {} has {} after {}",
                  sparse.columns, i, index, previous));
            previous = index;
            const auto value = static_cast<double>(values[e]);
            if (!is_valid(value)) fail_for_value(fmt::format("X[{}, {}]", i, index), value);
          }
        }
      },
      sparse.offsets, sparse.indices, sparse.values);
}

}  // namespace

template <typename Number>
std::span<const Number> contiguous(const AnyArray& array, const std::string& name) {
  check_contiguous(array, name);
  if (!has_type<Number>(array)) fail(fmt::format("{} must have the dtype {}", name, type_name<Number>()));
  return {aligned_data<Number>(array, name), array.shape(0)};
}

template std::span<const double> contiguous(const AnyArray&, const std::string&);
template std::span<const std::int32_t> contiguous(const AnyArray&, const std::string&);
template std::span<const std::uint64_t> contiguous(const AnyArray&, const std::string&);

ArrayRows ArrayRows::dense(const AnyArray& values) {
  if (values.ndim() != 2) fail(fmt::format("X must have 2 dimensions, got {}", values.ndim()));
  ArrayRows result(static_cast<Index>(values.shape(0)));
  const MatrixView matrix{static_cast<Index>(values.shape(1)), real_data(values, "X"), values.stride(0),
                          values.stride(1)};
  check_matrix(matrix, result.rows_.count);
  result.rows_.features = matrix;
  result.owners_.push_back(nb::cast(values));
  return result;
}

ArrayRows ArrayRows::sparse(const AnyArray& offsets, const AnyArray& indices, const AnyArray& values, Index columns) {
  check_contiguous(values, "X.data");
  const SparseView matrix{columns, integer_data(offsets, "X.indptr"), integer_data(indices, "X.indices"),
                          real_data(values, "X.data")};
  if (columns < 0 || columns > std::numeric_limits<std::int32_t>::max())
    fail(fmt::format("X must have from 0 to 2^31 - 1 columns, got {}", columns));
  if (offsets.shape(0) < 1) fail("X.indptr must have one entry more than X has rows, got an empty array");
  if (indices.shape(0) != values.shape(0))
    fail(fmt::format("X.indices and X.data must have the same length, got {} and {}", indices.shape(0),
                     values.shape(0)));
  ArrayRows result(static_cast<Index>(offsets.shape(0)) - 1);
  check_sparse(matrix, result.rows_.count, static_cast<Index>(values.shape(0)));
  result.rows_.features = matrix;
  for (const AnyArray& array : {offsets, indices, values}) result.owners_.push_back(nb::cast(array));
  return result;
}

ArrayRows ArrayRows::table(Index count) {
  if (count < 0) fail(fmt::format("count must be at least 0, got {}", count));
  ArrayRows result(count);
  result.rows_.features = std::vector<ColumnView>();
  return result;
}

void ArrayRows::add_numeric(const std::string& name, const AnyArray& values) {
  const std::string location = "column '" + name + "'";
  check_row_count(values, location);
  ColumnView column;
  column.name = name;
  column.numbers = real_data(values, location);
  column.stride = rows_.count > 0 ? values.stride(0) : 1;
  std::visit(
      [&](const auto* numbers) {
        for (Index i = 0; i < rows_.count; ++i) {
          const auto value = static_cast<double>(numbers[i * column.stride]);
          if (!std::isnan(value) && !is_valid(value)) fail_for_value(fmt::format("{}, row {},", location, i), value);
        }
      },
      column.numbers);
  columns().push_back(std::move(column));
  owners_.push_back(nb::cast(values));
}

void ArrayRows::add_categorical(const std::string& name, const AnyArray& codes, std::vector<std::string> categories) {
  const std::string location = "column '" + name + "'";
  const std::span<const std::int32_t> code_values = contiguous<std::int32_t>(codes, location);
  check_row_count(codes, location);
  const auto count = static_cast<std::int64_t>(categories.size());
  for (std::size_t i = 0; i < code_values.size(); ++i)
    if (code_values[i] >= count)
      fail(fmt::format("{}, row {}: the code {} is not below the number of categories, {}", location, i, code_values[i],
                       count));
  ColumnView column;
  column.name = name;
  column.is_categorical = true;
  column.codes = code_values.data();
  column.categories = std::move(categories);
  columns().push_back(std::move(column));
  owners_.push_back(nb::cast(codes));
}

void ArrayRows::set_targets(const AnyArray& targets, std::vector<std::string> labels) {
  if (labels.size() == 1) fail("labels must have no entry, or at least 2, got 1");
  rows_.targets = add_row_values(targets, "y");
  rows_.labels = std::move(labels);
}

void ArrayRows::set_weights(const AnyArray& weights) { rows_.weights = add_row_values(weights, "sample_weight"); }

std::vector<ColumnView>& ArrayRows::columns() {
  auto* table = std::get_if<std::vector<ColumnView>>(&rows_.features);
  if (table == nullptr) fail("columns can be added to a table only");
  return *table;
}

std::span<const double> ArrayRows::add_row_values(const AnyArray& array, const std::string& name) {
  const std::span<const double> numbers = contiguous<double>(array, name);
  check_row_count(array, name);
  owners_.push_back(nb::cast(array));
  return numbers;
}

void ArrayRows::check_row_count(const AnyArray& array, const std::string& name) const {
  check_one_dimension(array, name);
  if (static_cast<Index>(array.shape(0)) != rows_.count)
    fail(fmt::format("{} must have one entry for each of the {} rows, got {} entries", name, rows_.count,
                     array.shape(0)));
}

}  // namespace dyad::python
