#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dyad {

using Index = std::ptrdiff_t;

/// Features of any larger size are refused: the squares of their products would not be finite.
inline constexpr double largest_value = 1e70;

/// View of a block of rows, dense (row-major) or sparse (compressed rows), with their targets. Does not own them.
/// Only the factories make one, and they check it; after that it is passed around by value.
template <typename Scalar>
class Rows {
 public:
  /// `values` holds count x dim numbers, row after row. `targets` holds one number per row, or nothing.
  static Rows dense(std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  /// Row i has the entries [offsets[i], offsets[i + 1]) of `columns` and `values`; columns lie in [0, dim) and rise
  /// along a row.
  static Rows sparse(std::span<const Index> offsets, std::span<const std::int32_t> columns,
                     std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});
  static Rows sparse(std::span<const std::int32_t> offsets, std::span<const std::int32_t> columns,
                     std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  /// The same without checks, for rows that the library has encoded itself: the checks read all columns.
  template <typename Offset>
  static Rows sparse_unchecked(std::span<const Offset> offsets, std::span<const std::int32_t> columns,
                               std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] Index dim() const { return dim_; }
  [[nodiscard]] bool is_sparse() const { return offsets_ != nullptr || short_offsets_ != nullptr; }
  [[nodiscard]] bool has_targets() const { return targets_ != nullptr; }

  [[nodiscard]] std::span<const Scalar> targets() const {
    return {targets_, static_cast<std::size_t>(has_targets() ? count_ : 0)};
  }

  /// The same rows, each counting as often as its weight says. Does not own the weights.
  [[nodiscard]] Rows weighted(std::span<const Scalar> weights) const;

  /// The same rows, of which only those with this mark count, or all but those.
  [[nodiscard]] Rows only(std::span<const std::uint8_t> marks, std::uint8_t mark) const;
  [[nodiscard]] Rows without(std::span<const std::uint8_t> marks, std::uint8_t mark) const;

  /// 1 unless given; 0: the row does not count.
  [[nodiscard]] Scalar weight(Index i) const {
    if (marks_ != nullptr && (marks_[i] == mark_) != marked_count_) return Scalar(0);
    return weights_ == nullptr ? Scalar(1) : weights_[i];
  }

  /// View of the rows [first, first + count).
  [[nodiscard]] Rows slice(Index first, Index count) const;

  /// The same rows with the features [first, first + count) alone, counted from 0.
  [[nodiscard]] Rows window(Index first, Index count) const;

  /// Dense rows only: the first number of row i, and how far it is from there to the next row.
  [[nodiscard]] const Scalar* row(Index i) const { return values_ + i * stride_; }
  [[nodiscard]] Index stride() const { return stride_; }

  /// Calls visit(j, x) for every entry of row i: all of a dense row, the stored entries of a sparse one.
  template <typename Visit>
  void for_each_entry(Index i, Visit&& visit) const {
    if (!is_sparse()) {
      const Scalar* x = row(i);
      for (Index j = 0; j < dim_; ++j) visit(j, x[j]);
      return;
    }
    const Index end = first_entry(i + 1);
    for (Index e = first_entry(i); e < end; ++e) {
      const Index j = columns_[e] - first_column_;
      if (j >= 0 && j < dim_) visit(j, values_[e]);
    }
  }

 private:
  [[nodiscard]] Index first_entry(Index i) const { return offsets_ != nullptr ? offsets_[i] : short_offsets_[i]; }

  Index count_ = 0;
  Index dim_ = 0;
  Index stride_ = 0;        ///< dense
  Index first_column_ = 0;  ///< sparse: of the window
  const Scalar* values_ = nullptr;
  const Scalar* targets_ = nullptr;
  const Scalar* weights_ = nullptr;
  const std::uint8_t* marks_ = nullptr;
  std::uint8_t mark_ = 0;
  bool marked_count_ = false;                    ///< or those with other marks
  const Index* offsets_ = nullptr;               ///< sparse: these,
  const std::int32_t* short_offsets_ = nullptr;  ///< or these
  const std::int32_t* columns_ = nullptr;
};

extern template class Rows<float>;
extern template class Rows<double>;

}  // namespace dyad
