#include "array_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

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
bool holds(const AnyArray& array) {
  return array.dtype() == nb::dtype<Number>();
}

template <typename Number>
const Number* aligned(const AnyArray& array, const std::string& name) {
  if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(Number) != 0)
    fail(fmt::format("{} must be aligned to {} bytes", name, alignof(Number)));
  return static_cast<const Number*>(array.data());
}

void require_one_dimension(const AnyArray& array, const std::string& name) {
  if (array.ndim() != 1) fail(fmt::format("{} must have one dimension, got {}", name, array.ndim()));
}

void require_contiguous(const AnyArray& array, const std::string& name) {
  require_one_dimension(array, name);
  if (array.shape(0) > 1 && array.stride(0) != 1) fail(name + " must be contiguous");
}

NumberPointer numbers_of(const AnyArray& array, const std::string& name) {
  if (holds<double>(array)) return aligned<double>(array, name);
  if (holds<float>(array)) return aligned<float>(array, name);
  fail(name + " must hold float64 or float32");
}

IntegerPointer integers_of(const AnyArray& array, const std::string& name) {
  require_contiguous(array, name);
  if (holds<std::int64_t>(array)) return aligned<std::int64_t>(array, name);
  if (holds<std::int32_t>(array)) return aligned<std::int32_t>(array, name);
  fail(name + " must hold int64 or int32");
}

[[noreturn]] void fail_for_value(const std::string& place, double value) {
  fail(fmt::format("{} is {:g}; expected finite numbers up to 1e70 in magnitude", place, value));
}

bool is_possible(double value) { return std::abs(value) <= largest_value; }

void require_possible_matrix(const MemoryMatrix& matrix, Index rows) {
  // The inner loop runs along the smaller stride.
  const bool by_rows = std::abs(matrix.column_stride) <= std::abs(matrix.row_stride);
  const Index outer = by_rows ? rows : matrix.columns;
  const Index inner = by_rows ? matrix.columns : rows;
  const Index outer_stride = by_rows ? matrix.row_stride : matrix.column_stride;
  const Index inner_stride = by_rows ? matrix.column_stride : matrix.row_stride;
  std::visit(
      [&](const auto* values) {
        for (Index i = 0; i < outer; ++i)
          for (Index j = 0; j < inner; ++j) {
            const auto value = static_cast<double>(values[i * outer_stride + j * inner_stride]);
            if (!is_possible(value)) fail_for_value(fmt::format("X[{}, {}]", by_rows ? i : j, by_rows ? j : i), value);
          }
      },
      matrix.values);
}

void require_possible_sparse(const MemorySparse& sparse, Index rows, Index entries) {
  std::visit(
      [&](const auto* offsets, const auto* indices, const auto* values) {
        if (offsets[0] != 0 || static_cast<Index>(offsets[rows]) != entries)
          fail(fmt::format("X.indptr must go from 0 to the number of entries, {}; it goes from {} to {}", entries,
                           offsets[0], offsets[rows]));
        for (Index i = 0; i < rows; ++i)
          if (offsets[i + 1] < offsets[i] || static_cast<Index>(offsets[i + 1]) > entries)
            fail(fmt::format("X.indptr must not decrease, nor exceed the {} entries; look at row {}", entries, i));
        for (Index i = 0; i < rows; ++i) {
          std::int64_t before = -1;
          for (auto e = static_cast<Index>(offsets[i]); e < static_cast<Index>(offsets[i + 1]); ++e) {
            const auto index = static_cast<std::int64_t>(indices[e]);
            if (index <= before || index >= sparse.columns)
              fail(fmt::format("X.indices must increase along a row and lie in [0, {}); row {} has {} after {}",
                               sparse.columns, i, index, before));
            before = index;
            const auto value = static_cast<double>(values[e]);
            if (!is_possible(value)) fail_for_value(fmt::format("X[{}, {}]", i, index), value);
          }
        }
      },
      sparse.offsets, sparse.indices, sparse.values);
}

}  // namespace

template <typename Number>
std::span<const Number> contiguous(const AnyArray& array, const std::string& name) {
  require_contiguous(array, name);
  if (!holds<Number>(array)) fail(fmt::format("{} must hold {}", name, type_name<Number>()));
  return {aligned<Number>(array, name), array.shape(0)};
}

template std::span<const double> contiguous(const AnyArray&, const std::string&);
template std::span<const std::int32_t> contiguous(const AnyArray&, const std::string&);
template std::span<const std::uint64_t> contiguous(const AnyArray&, const std::string&);

ArrayRows ArrayRows::dense(const AnyArray& values) {
  if (values.ndim() != 2) fail(fmt::format("X must have two dimensions, got {}", values.ndim()));
  ArrayRows result(static_cast<Index>(values.shape(0)));
  const MemoryMatrix matrix{static_cast<Index>(values.shape(1)), numbers_of(values, "X"), values.stride(0),
                            values.stride(1)};
  require_possible_matrix(matrix, result.rows_.count);
  result.rows_.features = matrix;
  result.owners_.push_back(nb::cast(values));
  return result;
}

ArrayRows ArrayRows::sparse(const AnyArray& offsets, const AnyArray& indices, const AnyArray& values, Index columns) {
  require_contiguous(values, "X.data");
  const MemorySparse matrix{columns, integers_of(offsets, "X.indptr"), integers_of(indices, "X.indices"),
                            numbers_of(values, "X.data")};
  if (columns < 0 || columns > std::numeric_limits<std::int32_t>::max())
    fail(fmt::format("X must have from 0 to 2^31 - 1 columns, got {}", columns));
  if (offsets.shape(0) < 1) fail("X.indptr must have one entry more than X has rows, got none");
  if (indices.shape(0) != values.shape(0))
    fail(fmt::format("X.indices and X.data must have the same length, got {} and {}", indices.shape(0),
                     values.shape(0)));
  ArrayRows result(static_cast<Index>(offsets.shape(0)) - 1);
  require_possible_sparse(matrix, result.rows_.count, static_cast<Index>(values.shape(0)));
  result.rows_.features = matrix;
  for (const AnyArray& array : {offsets, indices, values}) result.owners_.push_back(nb::cast(array));
  return result;
}

ArrayRows ArrayRows::table(Index count) {
  if (count < 0) fail(fmt::format("X must have at least 0 rows, got {}", count));
  ArrayRows result(count);
  result.rows_.features = std::vector<MemoryColumn>();
  return result;
}

void ArrayRows::add_numbers(const std::string& name, const AnyArray& values) {
  const std::string place = "column '" + name + "'";
  require_rows(values, place);
  MemoryColumn column;
  column.name = name;
  column.numbers = numbers_of(values, place);
  column.stride = rows_.count > 0 ? values.stride(0) : 1;
  std::visit(
      [&](const auto* numbers) {
        for (Index i = 0; i < rows_.count; ++i) {
          const auto value = static_cast<double>(numbers[i * column.stride]);
          if (!std::isnan(value) && !is_possible(value)) fail_for_value(fmt::format("{}, row {},", place, i), value);
        }
      },
      column.numbers);
  columns().push_back(std::move(column));
  owners_.push_back(nb::cast(values));
}

void ArrayRows::add_categories(const std::string& name, const AnyArray& codes, std::vector<std::string> categories) {
  const std::string place = "column '" + name + "'";
  const std::span<const std::int32_t> all = contiguous<std::int32_t>(codes, place);
  require_rows(codes, place);
  const auto count = static_cast<std::int64_t>(categories.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] >= count)
      fail(fmt::format("{}, row {}, has the code {}; there are {} categories", place, i, all[i], count));
  MemoryColumn column;
  column.name = name;
  column.is_category = true;
  column.codes = all.data();
  column.categories = std::move(categories);
  columns().push_back(std::move(column));
  owners_.push_back(nb::cast(codes));
}

void ArrayRows::set_targets(const AnyArray& targets, std::vector<std::string> labels) {
  if (!labels.empty() && labels.size() != 2) fail(fmt::format("labels must be none or two, got {}", labels.size()));
  rows_.targets = one_per_row(targets, "y");
  rows_.labels = std::move(labels);
}

void ArrayRows::set_weights(const AnyArray& weights) { rows_.weights = one_per_row(weights, "sample_weight"); }

std::vector<MemoryColumn>& ArrayRows::columns() {
  auto* table = std::get_if<std::vector<MemoryColumn>>(&rows_.features);
  if (table == nullptr) fail("only tables have columns");
  return *table;
}

std::span<const double> ArrayRows::one_per_row(const AnyArray& array, const std::string& name) {
  const std::span<const double> numbers = contiguous<double>(array, name);
  require_rows(array, name);
  owners_.push_back(nb::cast(array));
  return numbers;
}

void ArrayRows::require_rows(const AnyArray& array, const std::string& name) const {
  require_one_dimension(array, name);
  if (static_cast<Index>(array.shape(0)) != rows_.count)
    fail(fmt::format("{} must have one entry for each of the {} rows, got {}", name, rows_.count, array.shape(0)));
}

}  // namespace dyad::python
