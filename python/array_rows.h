#pragma once

#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <dyad/dataset.h>

namespace dyad::python {

namespace nb = nanobind;

/// CPU array of any type, shape and strides. Its properties are checked before it is read.
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

/// Rows in NumPy arrays: a DatasetView and references that keep the arrays alive. Every function checks the number of
/// dimensions, the type, the alignment, the strides and the length of each array, and every value from which an address
/// is computed, and throws std::invalid_argument that names the array. The Python package copies arrays of other types
/// and layouts beforehand. Copies share the arrays; creation, copy and destruction require the GIL.
class ArrayRows {
 public:
  /// Matrix of float64 or float32 with any strides. Values must be finite and at most `max_abs_value` in magnitude.
  static ArrayRows dense(const AnyArray& values);

  /// Compressed sparse rows in contiguous arrays: offsets and indices of int64 or int32, values as in `dense`.
  /// Offsets start at 0, do not decrease and end at the number of entries. The indices of a row are strictly increasing
  /// and in [0, columns).
  static ArrayRows sparse(const AnyArray& offsets, const AnyArray& indices, const AnyArray& values, Index columns);

  /// Table without columns; add_numeric() and add_categorical() append them.
  static ArrayRows table(Index count);
  /// Appends a numeric column: one-dimensional array of float64 or float32 with any stride. Values as in `dense`, or
  /// NaN for missing values.
  void add_numeric(const std::string& name, const AnyArray& values);
  /// Appends a categorical column: contiguous int32 codes, which are indices into `categories`. Negative: missing
  /// value.
  void add_categorical(const std::string& name, const AnyArray& codes, std::vector<std::string> categories);

  /// Sets the targets, contiguous float64. `labels`: names of the classes 0, 1, ...; empty: regression.
  void set_targets(const AnyArray& targets, std::vector<std::string> labels);
  /// Sets the row weights, contiguous float64.
  void set_weights(const AnyArray& weights);

  [[nodiscard]] const DatasetView& rows() const { return rows_; }

 private:
  explicit ArrayRows(Index count) { rows_.count = count; }

  /// Columns of a table. Throws std::invalid_argument for other layouts.
  std::vector<ColumnView>& columns();
  /// Checks an array of one number per row and keeps it alive.
  std::span<const double> add_row_values(const AnyArray& array, const std::string& name);
  void check_row_count(const AnyArray& array, const std::string& name) const;

  DatasetView rows_;
  std::vector<nb::object> owners_;  ///< arrays to which rows_ refers
};

/// Returns the values of a one-dimensional array that is contiguous, aligned and of exactly this type.
/// \throws std::invalid_argument that names the array
template <typename Number>
std::span<const Number> contiguous(const AnyArray& array, const std::string& name);

}  // namespace dyad::python
