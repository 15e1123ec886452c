#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <dyad/memory.h>
#include <dyad/rows.h>

#include "base/spill_buffer.h"

namespace dyad {

template <typename Scalar>
class ScaledRows;

/// Cache of the rows of the first pass, without those of weight 0, copied in the layout of the first of them; or
/// looked at where they lie, if that is in memory that stays.
template <typename Scalar>
class RowCache {
 public:
  RowCache() { offsets_.put(0); }

  /// Whether the entries of such rows can be looked at where they lie.
  [[nodiscard]] static bool can_borrow(const MemorySparse& rows) {
    return std::holds_alternative<const Scalar*>(rows.values) &&
           std::holds_alternative<const std::int32_t*>(rows.indices) &&
           std::visit([](const auto* offsets) { return offsets[0] == 0; }, rows.offsets);
  }

  /// From now on all of these rows are appended one after the other, and only their targets and weights are copied.
  void borrow(const MemorySparse& rows, Index count) {
    const auto last = std::visit([&](const auto* all) { return static_cast<std::size_t>(all[count]); }, rows.offsets);
    lent_offsets_ = rows.offsets;
    lent_columns_ = {std::get<const std::int32_t*>(rows.indices), last};
    lent_values_ = {std::get<const Scalar*>(rows.values), last};
    targets_.make_room(static_cast<std::size_t>(count));
    is_borrowed_ = true;
  }

  /// Numbers are converted to Scalar. `left_dim`: bilinear rows; the first feature of the right side, which moves when
  /// the left side grows.
  template <typename Other>
  void append(const Rows<Other>& rows, Index left_dim = 0) {
    if (count_ == 0) sparse_ = rows.is_sparse() || is_borrowed_;
    for (Index i = 0; i < rows.count(); ++i) {
      if (is_borrowed_) {
        put_weight(static_cast<Scalar>(rows.weight(i)));
        targets_.put(static_cast<Scalar>(rows.targets()[static_cast<std::size_t>(i)]));
        ++count_;
        continue;
      }
      if (!(rows.weight(i) > 0)) continue;
      if (sparse_)
        put_sparse(rows, i, left_dim);
      else
        put_dense(rows, i);
      put_weight(static_cast<Scalar>(rows.weight(i)));
      targets_.put(static_cast<Scalar>(rows.targets()[static_cast<std::size_t>(i)]));
      ++count_;
    }
  }

  /// From now on in private files; see PrivateFile for what can go wrong.
  void move_to_disk(const std::string& folder) {
    offsets_.move_to_disk(folder);
    columns_.move_to_disk(folder);
    values_.move_to_disk(folder);
    targets_.move_to_disk(folder);
    weights_.move_to_disk(folder);
    folder_ = folder;
  }
  [[nodiscard]] bool is_on_disk() const { return !folder_.empty(); }
  [[nodiscard]] const std::string& folder() const { return folder_; }

  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] bool is_sparse() const { return sparse_; }
  [[nodiscard]] double entries() const { return static_cast<double>(lent_values_.size() + values_.size()); }

  /// What so many rows like these take.
  [[nodiscard]] static double bytes_for(double rows, double entries_of_row, bool sparse) {
    const double entry =
        static_cast<double>(sizeof(Scalar)) + (sparse ? static_cast<double>(sizeof(std::int32_t)) : 0.0);
    const double of_row = 2 * static_cast<double>(sizeof(Scalar)) + (sparse ? static_cast<double>(sizeof(Index)) : 0.0);
    return rows * (entries_of_row * entry + of_row);
  }
  [[nodiscard]] double bytes() const {
    const auto rows = static_cast<double>(count_);
    return count_ == 0 ? 0 : bytes_for(rows, is_borrowed_ ? 0 : entries() / rows, sparse_);
  }

  [[nodiscard]] Rows<Scalar> view(Index dim, Index left_dim = 0) {
    settle(left_dim);
    const Rows<Scalar> rows = sparse_ ? sparse_view(dim) : Rows<Scalar>::dense(values_.all(), dim, targets_.all());
    return weights_.size() == 0 ? rows : rows.weighted(weights_.all());
  }

 private:
  friend class ScaledRows<Scalar>;

  /// Multiplies each feature by its factor. Either all values are multiplied, or an exception leaves them unchanged.
  void scale(std::span<const double> factors, Index left_dim) {
    settle(left_dim);
    copy_lent_values();
    const std::size_t dim = factors.size();
    const std::span<Scalar> values = values_.all();
    const std::span<const std::int32_t> columns = all_columns();
    for (std::size_t e = 0; e < values.size(); ++e)
      values[e] *= static_cast<Scalar>(factors[sparse_ ? static_cast<std::size_t>(columns[e]) : e % dim]);
  }

  void copy_lent_values() {
    if (lent_values_.empty()) return;
    SpillBuffer<Scalar> copies;
    if (is_on_disk()) copies.move_to_disk(folder_);
    for (const Scalar value : lent_values_) copies.put(value);
    values_ = std::move(copies);
    lent_values_ = {};
  }

  [[nodiscard]] Rows<Scalar> sparse_view(Index dim) {
    const auto seen = [&](auto offsets) {
      return Rows<Scalar>::sparse_unchecked(offsets, all_columns(), all_values(), dim, targets_.all());
    };
    if (!is_borrowed_) return seen(std::span<const Index>(offsets_.all()));
    const auto size = static_cast<std::size_t>(count_) + 1;
    return std::visit([&](const auto* offsets) { return seen(std::span(offsets, size)); }, lent_offsets_);
  }

  [[nodiscard]] std::span<const std::int32_t> all_columns() { return is_borrowed_ ? lent_columns_ : columns_.all(); }
  [[nodiscard]] std::span<const Scalar> all_values() { return lent_values_.empty() ? values_.all() : lent_values_; }

  void put_weight(Scalar weight) {
    if (weights_.size() == 0 && weight == Scalar(1)) return;
    for (auto missing = static_cast<Index>(weights_.size()); missing < count_; ++missing) weights_.put(1);
    weights_.put(weight);
  }

  template <typename Other>
  void put_dense(const Rows<Other>& rows, Index i) {
    Index next = 0;
    rows.for_each_entry(i, [&](Index j, Other x) {
      for (; next < j; ++next) values_.put(0);
      values_.put(static_cast<Scalar>(x));
      ++next;
    });
    for (; next < rows.dim(); ++next) values_.put(0);
  }

  template <typename Other>
  void put_sparse(const Rows<Other>& rows, Index i, Index left_dim) {
    rows.for_each_entry(i, [&](Index j, Other number) {
      const auto x = static_cast<Scalar>(number);
      if (x == 0) return;
      const Index place = left_dim > 0 && j >= left_dim ? -1 - (j - left_dim) : j;
      has_right_ = has_right_ || place < 0;
      columns_.put(static_cast<std::int32_t>(place));
      values_.put(x);
    });
    offsets_.put(static_cast<Index>(values_.size()));
  }

  /// Features of the right side get their places behind the left one.
  void settle(Index left_dim) {
    if (!has_right_) return;
    for (std::int32_t& column : columns_.all())
      if (column < 0) column = static_cast<std::int32_t>(left_dim - 1 - column);
    has_right_ = false;
  }

  Index count_ = 0;
  bool sparse_ = false;
  bool has_right_ = false;  ///< features are counted from the start of the right side, as -1, -2, ...
  bool is_borrowed_ = false;
  IntegerPointer lent_offsets_;
  std::span<const std::int32_t> lent_columns_;
  std::span<const Scalar> lent_values_;  ///< until they are scaled
  std::string folder_;                   ///< of the private files
  SpillBuffer<Index> offsets_;
  SpillBuffer<std::int32_t> columns_;
  SpillBuffer<Scalar> values_;
  SpillBuffer<Scalar> targets_;
  SpillBuffer<Scalar> weights_;  ///< empty: all 1
};

/// Divides the features of cached rows by their scales for the lifetime of this object, and multiplies them again on
/// destruction, also when an exception passes. A feature of scale 0 is set to 0 and stays so. Does not own the rows, to
/// which nothing may be appended meanwhile.
template <typename Scalar>
class ScaledRows {
 public:
  ScaledRows(RowCache<Scalar>& rows, std::vector<double> scales, Index left_dim = 0)
      : rows_(rows), scales_(std::move(scales)), inverse_(scales_), left_dim_(left_dim) {
    for (double& scale : inverse_) scale = scale > 0 ? 1 / scale : 0;
    are_one_ = std::all_of(scales_.begin(), scales_.end(), [](double scale) { return scale == 1 || scale == 0; });
    if (!are_one_) rows_.scale(inverse_, left_dim_);
  }
  ~ScaledRows() {
    if (!are_one_) rows_.scale(scales_, left_dim_);
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
  bool are_one_ = false;
};

}  // namespace dyad
