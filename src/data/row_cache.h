#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/rows.h>

#include "base/spill_buffer.h"

namespace dyad {

template <typename Scalar>
class ScaledRows;

/// Cache of the encoded rows of the first pass, for multi-pass training. Rows are copied in the layout (dense or
/// sparse) of the first appended block, without rows of weight 0, in memory or on disk (move_to_disk). Sparse rows that
/// the caller keeps in memory can be borrowed instead of copied. Not thread-safe.
template <typename Scalar>
class RowCache {
 public:
  RowCache() { offsets_.append(0); }

  /// Returns true if borrow() accepts these rows: values of type Scalar, 32-bit indices, and offsets that begin with 0.
  [[nodiscard]] static bool can_borrow(const SparseView& rows) {
    return std::holds_alternative<const Scalar*>(rows.values) &&
           std::holds_alternative<const std::int32_t*>(rows.indices) &&
           std::visit([](const auto* offsets) { return offsets[0] == 0; }, rows.offsets);
  }

  /// Uses the entries of `rows` without copying them; the caller keeps them alive. All `count` rows must then be
  /// appended in order, including those of weight 0, and append() copies only their targets and weights.
  void borrow(const SparseView& rows, Index count) {
    const auto last = std::visit([&](const auto* all) { return static_cast<std::size_t>(all[count]); }, rows.offsets);
    borrowed_offsets_ = rows.offsets;
    borrowed_columns_ = {std::get<const std::int32_t*>(rows.indices), last};
    borrowed_values_ = {std::get<const Scalar*>(rows.values), last};
    targets_.reserve(static_cast<std::size_t>(count));
    is_borrowed_ = true;
  }

  /// Reserves memory for `rows` dense rows with `dim` features, so that append() does not reallocate.
  void reserve_dense(Index rows, Index dim) {
    values_.reserve(static_cast<std::size_t>(rows * dim));
    targets_.reserve(static_cast<std::size_t>(rows));
  }

  /// Appends rows, converted to Scalar. `left_dim` is the number of left features of bilinear rows, 0 for others. The
  /// right features are stored relative to it, because it changes when the left side grows.
  template <typename Other>
  void append(const Rows<Other>& rows, Index left_dim = 0) {
    if (count_ == 0) is_sparse_ = rows.is_sparse() || is_borrowed_;
    for (Index i = 0; i < rows.count(); ++i) {
      if (is_borrowed_) {
        append_weight(static_cast<Scalar>(rows.weight(i)));
        targets_.append(static_cast<Scalar>(rows.targets()[static_cast<std::size_t>(i)]));
        ++count_;
        continue;
      }
      if (!(rows.weight(i) > 0)) continue;
      if (is_sparse_)
        append_sparse(rows, i, left_dim);
      else
        append_dense(rows, i);
      append_weight(static_cast<Scalar>(rows.weight(i)));
      targets_.append(static_cast<Scalar>(rows.targets()[static_cast<std::size_t>(i)]));
      ++count_;
    }
  }

  /// Moves the cache to private files in `folder`. Throws PrivateFileError on failure, as do later calls of append().
  void move_to_disk(const std::string& folder) {
    offsets_.move_to_disk(folder);
    columns_.move_to_disk(folder);
    values_.move_to_disk(folder);
    targets_.move_to_disk(folder);
    weights_.move_to_disk(folder);
    folder_ = folder;
  }

  [[nodiscard]] bool is_on_disk() const { return !folder_.empty(); }
  /// Folder of the private files; empty if the cache is in memory.
  [[nodiscard]] const std::string& folder() const { return folder_; }

  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] bool is_sparse() const { return is_sparse_; }
  /// Number of stored entries of all rows, including borrowed ones.
  [[nodiscard]] double entries() const { return static_cast<double>(borrowed_values_.size() + values_.size()); }

  /// Upper bound on the size in bytes of a cache of `rows` rows with `entries_per_row` entries each. It counts a target
  /// and a weight per row, an offset per sparse row, and a column per sparse entry.
  [[nodiscard]] static double bytes_for(double rows, double entries_per_row, bool sparse) {
    const double entry_bytes =
        static_cast<double>(sizeof(Scalar)) + (sparse ? static_cast<double>(sizeof(std::int32_t)) : 0.0);
    const double row_bytes =
        2 * static_cast<double>(sizeof(Scalar)) + (sparse ? static_cast<double>(sizeof(Index)) : 0.0);
    return rows * (entries_per_row * entry_bytes + row_bytes);
  }
  /// Upper bound on the size in bytes of this cache, without borrowed entries.
  [[nodiscard]] double bytes() const {
    const auto rows = static_cast<double>(count_);
    return count_ == 0 ? 0 : bytes_for(rows, is_borrowed_ ? 0 : entries() / rows, is_sparse_);
  }

  /// View of all rows. `dim` and `left_dim` are the final numbers of features and of left features. Do not append
  /// afterwards if the cache is on disk.
  [[nodiscard]] Rows<Scalar> view(Index dim, Index left_dim = 0) {
    resolve_relative_columns(left_dim);
    const Rows<Scalar> rows = is_sparse_ ? sparse_view(dim) : Rows<Scalar>::dense(values_.all(), dim, targets_.all());
    return weights_.size() == 0 ? rows : rows.weighted(weights_.all());
  }

 private:
  friend class ScaledRows<Scalar>;

  /// Multiplies each feature by its factor. Either all values are multiplied, or an exception leaves them unchanged.
  void scale(std::span<const double> factors, Index left_dim) {
    resolve_relative_columns(left_dim);
    copy_borrowed_values();
    const std::size_t dim = factors.size();
    const std::span<Scalar> values = values_.all();
    const std::span<const std::int32_t> columns = all_columns();
    for (std::size_t e = 0; e < values.size(); ++e)
      values[e] *= static_cast<Scalar>(factors[is_sparse_ ? static_cast<std::size_t>(columns[e]) : e % dim]);
  }

  /// Replaces borrowed values by a copy that can be modified.
  void copy_borrowed_values() {
    if (borrowed_values_.empty()) return;
    SpillBuffer<Scalar> copies;
    if (is_on_disk()) copies.move_to_disk(folder_);
    for (const Scalar value : borrowed_values_) copies.append(value);
    values_ = std::move(copies);
    borrowed_values_ = {};
  }

  [[nodiscard]] Rows<Scalar> sparse_view(Index dim) {
    const auto make_view = [&](auto offsets) {
      return Rows<Scalar>::sparse_unchecked(offsets, all_columns(), all_values(), dim, targets_.all());
    };
    if (!is_borrowed_) return make_view(std::span<const Index>(offsets_.all()));
    const auto size = static_cast<std::size_t>(count_) + 1;
    return std::visit([&](const auto* offsets) { return make_view(std::span(offsets, size)); }, borrowed_offsets_);
  }

  [[nodiscard]] std::span<const std::int32_t> all_columns() {
    return is_borrowed_ ? borrowed_columns_ : columns_.all();
  }
  [[nodiscard]] std::span<const Scalar> all_values() {
    return borrowed_values_.empty() ? values_.all() : borrowed_values_;
  }

  /// Stores no weights while all of them are 1. For the first weight other than 1, also stores a 1 for each preceding
  /// row.
  void append_weight(Scalar weight) {
    if (weights_.size() == 0 && weight == Scalar(1)) return;
    for (auto missing = static_cast<Index>(weights_.size()); missing < count_; ++missing) weights_.append(1);
    weights_.append(weight);
  }

  template <typename Other>
  void append_dense(const Rows<Other>& rows, Index i) {
    Index next = 0;
    rows.for_each_entry(i, [&](Index j, Other x) {
      for (; next < j; ++next) values_.append(0);
      values_.append(static_cast<Scalar>(x));
      ++next;
    });
    for (; next < rows.dim(); ++next) values_.append(0);
  }

  template <typename Other>
  void append_sparse(const Rows<Other>& rows, Index i, Index left_dim) {
    rows.for_each_entry(i, [&](Index j, Other number) {
      const auto x = static_cast<Scalar>(number);
      if (x == 0) return;
      const Index column = left_dim > 0 && j >= left_dim ? -1 - (j - left_dim) : j;
      has_relative_columns_ = has_relative_columns_ || column < 0;
      columns_.append(static_cast<std::int32_t>(column));
      values_.append(x);
    });
    offsets_.append(static_cast<Index>(values_.size()));
  }

  /// Replaces relative columns of right features by columns that follow the left features.
  void resolve_relative_columns(Index left_dim) {
    if (!has_relative_columns_) return;
    for (std::int32_t& column : columns_.all())
      if (column < 0) column = static_cast<std::int32_t>(left_dim - 1 - column);
    has_relative_columns_ = false;
  }

  Index count_ = 0;
  bool is_sparse_ = false;
  bool has_relative_columns_ = false;  ///< columns_ stores right feature r as -1 - r
  bool is_borrowed_ = false;
  IntegerPointer borrowed_offsets_;
  std::span<const std::int32_t> borrowed_columns_;
  std::span<const Scalar> borrowed_values_;  ///< empty after copy_borrowed_values()
  std::string folder_;                       ///< folder of the private files; empty if in memory
  SpillBuffer<Index> offsets_;
  SpillBuffer<std::int32_t> columns_;
  SpillBuffer<Scalar> values_;
  SpillBuffer<Scalar> targets_;
  SpillBuffer<Scalar> weights_;  ///< empty: all 1
};

/// Divides the features of cached rows by their scales for the lifetime of this object and multiplies them by the
/// scales on destruction. A feature of scale 0 becomes 0 and stays 0, unless all scales are 0 or 1; then no value
/// changes. Does not own the rows; the caller keeps them alive and does not append to them meanwhile.
template <typename Scalar>
class ScaledRows {
 public:
  ScaledRows(RowCache<Scalar>& rows, std::vector<double> scales, Index left_dim = 0)
      : rows_(rows), scales_(std::move(scales)), inverse_(scales_), left_dim_(left_dim) {
    for (double& scale : inverse_) scale = scale > 0 ? 1 / scale : 0;
    is_identity_ = std::all_of(scales_.begin(), scales_.end(), [](double scale) { return scale == 1 || scale == 0; });
    if (!is_identity_) rows_.scale(inverse_, left_dim_);
  }
  ~ScaledRows() {
    if (!is_identity_) rows_.scale(scales_, left_dim_);
  }
  ScaledRows(const ScaledRows&) = delete;
  ScaledRows& operator=(const ScaledRows&) = delete;

  [[nodiscard]] const std::vector<double>& scales() const { return scales_; }
  [[nodiscard]] const std::vector<double>& inverse_scales() const { return inverse_; }

 private:
  RowCache<Scalar>& rows_;
  std::vector<double> scales_;
  std::vector<double> inverse_;
  Index left_dim_;
  bool is_identity_ = false;
};

}  // namespace dyad
