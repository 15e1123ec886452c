// What Python hands over: its arrays as rows of the library, Ctrl-C, and arrays on the way back.
#pragma once

#include <chrono>
#include <exception>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <dyad/memory.h>

namespace dyad::python {

namespace nb = nanobind;

inline std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
inline nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Codes = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline NumberPointer numbers_of(const AnyArray& array, const char* name) {
  if (array.dtype() == nb::dtype<double>()) return static_cast<const double*>(array.data());
  if (array.dtype() == nb::dtype<float>()) return static_cast<const float*>(array.data());
  throw std::invalid_argument(std::string(name) + " must hold float64 or float32");
}

inline IntegerPointer integers_of(const AnyArray& array, const char* name) {
  if (array.dtype() == nb::dtype<std::int64_t>()) return static_cast<const std::int64_t*>(array.data());
  if (array.dtype() == nb::dtype<std::int32_t>()) return static_cast<const std::int32_t*>(array.data());
  throw std::invalid_argument(std::string(name) + " must hold int64 or int32");
}

/// Rows in arrays of Python's, which live as long as this.
class ArrayRows {
 public:
  static ArrayRows dense(const AnyArray& values) {
    if (values.ndim() != 2) throw std::invalid_argument("X must have two dimensions");
    ArrayRows result(values.shape(0));
    result.rows_.features =
        MemoryMatrix{static_cast<Index>(values.shape(1)), numbers_of(values, "X"), values.stride(0), values.stride(1)};
    result.owners_.push_back(nb::cast(values));
    return result;
  }

  static ArrayRows sparse(const AnyArray& offsets, const AnyArray& indices, const AnyArray& values, Index columns) {
    if (offsets.ndim() != 1 || offsets.shape(0) < 1 || indices.ndim() != 1 || values.ndim() != 1 ||
        indices.shape(0) != values.shape(0))
      throw std::invalid_argument("the arrays of X do not fit together");
    ArrayRows result(offsets.shape(0) - 1);
    const IntegerPointer at = integers_of(offsets, "the offsets of X");
    const auto entries = static_cast<Index>(values.shape(0));
    std::visit(
        [&](const auto* all) {
          for (Index i = 0; i < result.rows_.count; ++i)
            if (all[i] < 0 || all[i + 1] < all[i] || all[i + 1] > entries)
              throw std::invalid_argument("the offsets of X must rise, and lie within its entries");
        },
        at);
    result.rows_.features =
        MemorySparse{columns, at, integers_of(indices, "the indices of X"), numbers_of(values, "X")};
    for (const AnyArray& array : {offsets, indices, values}) result.owners_.push_back(nb::cast(array));
    return result;
  }

  static ArrayRows table(std::size_t count) {
    ArrayRows result(count);
    result.rows_.features = std::vector<MemoryColumn>();
    return result;
  }

  void add_numbers(const std::string& name, const AnyArray& values) {
    require_rows(values.ndim() == 1 ? values.shape(0) : 0, name);
    MemoryColumn column;
    column.name = name;
    column.numbers = numbers_of(values, name.c_str());
    column.stride = values.stride(0);
    columns().push_back(std::move(column));
    owners_.push_back(nb::cast(values));
  }

  void add_categories(const std::string& name, const Codes& codes, std::vector<std::string> categories) {
    require_rows(codes.shape(0), name);
    for (std::size_t i = 0; i < codes.shape(0); ++i)
      if (codes.data()[i] >= static_cast<std::int32_t>(categories.size()))
        throw std::invalid_argument("the column '" + name + "' has a code without a category");
    MemoryColumn column;
    column.name = name;
    column.is_category = true;
    column.codes = codes.data();
    column.categories = std::move(categories);
    columns().push_back(std::move(column));
    owners_.push_back(nb::cast(codes));
  }

  void set_targets(const Doubles& targets, std::vector<std::string> labels) {
    require_rows(targets.shape(0), "y");
    rows_.targets = {targets.data(), targets.shape(0)};
    rows_.labels = std::move(labels);
    owners_.push_back(nb::cast(targets));
  }

  void set_weights(const Doubles& weights) {
    require_rows(weights.shape(0), "sample_weight");
    rows_.weights = {weights.data(), weights.shape(0)};
    owners_.push_back(nb::cast(weights));
  }

  [[nodiscard]] const MemoryRows& rows() const { return rows_; }

 private:
  explicit ArrayRows(std::size_t count) { rows_.count = static_cast<Index>(count); }

  std::vector<MemoryColumn>& columns() {
    auto* table = std::get_if<std::vector<MemoryColumn>>(&rows_.features);
    if (table == nullptr) throw std::invalid_argument("only tables have columns");
    return *table;
  }
  void require_rows(std::size_t count, const std::string& name) const {
    if (static_cast<Index>(count) != rows_.count)
      throw std::invalid_argument(name + " must have one entry for each of the " + std::to_string(rows_.count) +
                                  " rows");
  }

  MemoryRows rows_;
  std::vector<nb::object> owners_;
};

/// Asked often, from C++ without the GIL: whether the user has pressed Ctrl-C.
class Interruption {
 public:
  bool operator()() {
    if (raised_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(20)) return false;
    last_ = now;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) raised_ = std::make_exception_ptr(nb::python_error());
    return raised_ != nullptr;
  }

  /// What was raised goes on its way.
  void finish() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The choice that a word means; nothing where there is none.
template <typename Choice>
std::optional<Choice> chosen(const std::optional<std::string>& word,
                             std::initializer_list<std::pair<const char*, Choice>> choices, const char* name) {
  if (!word) return {};
  for (const auto& [known, choice] : choices)
    if (*word == known) return choice;
  std::string all;
  for (const auto& [known, choice] : choices) all += (all.empty() ? "'" : ", '") + std::string(known) + "'";
  throw std::invalid_argument(std::string(name) + " must be one of " + all + ", got '" + *word + "'");
}

/// Takes the numbers over, without copying them.
template <typename Number>
nb::object array_of(std::vector<Number> numbers, std::vector<std::size_t> shape) {
  auto* owned = new std::vector<Number>(std::move(numbers));
  const nb::capsule owner(owned, [](void* of) noexcept { delete static_cast<std::vector<Number>*>(of); });
  return nb::cast(nb::ndarray<nb::numpy, Number>(owned->data(), shape.size(), shape.data(), owner));
}

template <typename Number>
nb::object array_of(std::vector<Number> numbers) {
  const std::size_t size = numbers.size();
  return array_of(std::move(numbers), {size});
}

/// Files as they are, and statistics that add: streams.cpp.
void bind_streams(nb::module_& module);

/// Rows in many parts: parts.cpp.
void bind_parts(nb::module_& module);

}  // namespace dyad::python
