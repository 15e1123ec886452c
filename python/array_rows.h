#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <dyad/memory.h>

namespace dyad::python {

namespace nb = nanobind;

/// An array of any type, shape and strides in memory of this process. Nothing else is known about it.
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

/// Rows in arrays of Python, which live as long as this object. Every function checks the number of dimensions, the
/// type, the alignment, the strides and the length of each array, and every value from which an address is computed.
/// Throws std::invalid_argument that names the array. The Python package copies arrays of other types and layouts
/// before they get here.
class ArrayRows {
 public:
  /// float64 or float32 in any strides; finite, at most `largest_value` in magnitude.
  static ArrayRows dense(const AnyArray& values);

  /// Compressed sparse rows in contiguous arrays: offsets and indices of int64 or int32, values like those of `dense`.
  /// Offsets go from 0 to the number of entries and do not decrease; the indices of a row increase and lie in
  /// [0, columns).
  static ArrayRows sparse(const AnyArray& offsets, const AnyArray& indices, const AnyArray& values, Index columns);

  /// Without columns; the others are added one by one.
  static ArrayRows table(Index count);
  /// Like `dense`, in one dimension; NaN: missing.
  void add_numbers(const std::string& name, const AnyArray& values);
  /// Contiguous int32; negative: missing.
  void add_categories(const std::string& name, const AnyArray& codes, std::vector<std::string> categories);

  /// Contiguous float64. `labels`: those of the classes 0 and 1, or none if targets are numbers.
  void set_targets(const AnyArray& targets, std::vector<std::string> labels);
  void set_weights(const AnyArray& weights);

  [[nodiscard]] const MemoryRows& rows() const { return rows_; }

 private:
  explicit ArrayRows(Index count) { rows_.count = count; }

  std::vector<MemoryColumn>& columns();
  std::span<const double> one_per_row(const AnyArray& array, const std::string& name);
  void require_rows(const AnyArray& array, const std::string& name) const;

  MemoryRows rows_;
  std::vector<nb::object> owners_;
};

/// The numbers of a contiguous one-dimensional array of exactly this type.
template <typename Number>
std::span<const Number> contiguous(const AnyArray& array, const std::string& name);

}  // namespace dyad::python
