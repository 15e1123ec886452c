#pragma once

#include <cstdint>
#include <span>

#include <dyad/types.h>

namespace dyad {

/// Limit on the absolute value of features and targets. Its fourth power, 1e280, and sums of 1e28 such numbers are
/// finite.
inline constexpr double max_abs_value = 1e70;

/// View of a block of rows with their targets, dense (row-major) or sparse (compressed sparse rows). It does not own
/// the arrays; the caller keeps them alive. Copies are cheap, and const member functions are thread-safe.
///
///     std::vector<double> x = {1, 2, 3, 4, 5, 6};  // two rows of three features
///     std::vector<double> y = {0.5, -0.5};
///     const auto rows = dyad::Rows<double>::dense(x, 3, y);
template <typename Scalar>
class Rows {
 public:
  /// Creates a view of dense rows.
  /// \param values   count x dim numbers in row-major order
  /// \param dim      number of features
  /// \param targets  one number per row, or empty
  /// \throws std::invalid_argument if the sizes disagree
  /// Complexity: O(1).
  static Rows dense(std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  /// Creates a view of sparse rows. Row i consists of the entries [offsets[i], offsets[i + 1]) of `columns` and
  /// `values`.
  /// \param offsets  count + 1 non-decreasing offsets
  /// \param columns  feature of each entry, in [0, dim), strictly increasing within a row
  /// \param values   value of each entry
  /// \param dim      number of features
  /// \param targets  one number per row, or empty
  /// \throws std::invalid_argument if the sizes disagree, or if an offset or a column is out of range or order
  /// Complexity: O(entries) for the checks.
  static Rows sparse(std::span<const Index> offsets, std::span<const std::int32_t> columns,
                     std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});
  /// \copydoc sparse
  static Rows sparse(std::span<const std::int32_t> offsets, std::span<const std::int32_t> columns,
                     std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  /// As `sparse`, without checks, in O(1). For rows that are known to be valid.
  template <typename Offset>
  static Rows sparse_unchecked(std::span<const Offset> offsets, std::span<const std::int32_t> columns,
                               std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  /// Number of rows.
  [[nodiscard]] Index count() const { return count_; }
  /// Number of features.
  [[nodiscard]] Index dim() const { return dim_; }
  /// True for compressed sparse rows.
  [[nodiscard]] bool is_sparse() const { return offsets_ != nullptr || short_offsets_ != nullptr; }
  /// True if the view has targets.
  [[nodiscard]] bool has_targets() const { return targets_ != nullptr; }

  /// Targets of the rows; empty if there are none.
  [[nodiscard]] std::span<const Scalar> targets() const {
    return {targets_, static_cast<std::size_t>(has_targets() ? count_ : 0)};
  }

  /// Returns the same rows with weights: a row of weight 2 counts twice. Does not own the weights.
  /// \throws std::invalid_argument unless there is one finite, non-negative weight per row
  [[nodiscard]] Rows weighted(std::span<const Scalar> weights) const;

  /// Returns the same rows, where rows i with marks[i] != mark have weight 0. Does not own the marks.
  /// \throws std::invalid_argument unless there is one mark per row
  [[nodiscard]] Rows only(std::span<const std::uint8_t> marks, std::uint8_t mark) const;
  /// Returns the same rows, where rows i with marks[i] == mark have weight 0. Does not own the marks.
  /// \throws std::invalid_argument unless there is one mark per row
  [[nodiscard]] Rows without(std::span<const std::uint8_t> marks, std::uint8_t mark) const;

  /// Weight of row i: 1 by default; 0 for rows that solvers skip.
  [[nodiscard]] Scalar weight(Index i) const {
    if (marks_ != nullptr && (marks_[i] == mark_) != selects_marked_) return Scalar(0);
    return weights_ == nullptr ? Scalar(1) : weights_[i];
  }

  /// Returns a view of the rows [first, first + count).
  [[nodiscard]] Rows slice(Index first, Index count) const;

  /// Returns a view of the same rows with the features [first, first + count) only, renumbered from 0.
  [[nodiscard]] Rows feature_slice(Index first, Index count) const;

  /// Dense rows only: pointer to the first value of row i.
  [[nodiscard]] const Scalar* row(Index i) const { return values_ + i * stride_; }
  /// Dense rows only: distance between consecutive rows, in numbers.
  [[nodiscard]] Index stride() const { return stride_; }

  /// Number of values of a dense row i, or of stored entries of a sparse row i.
  [[nodiscard]] Index entry_count(Index i) const { return is_sparse() ? first_entry(i + 1) - first_entry(i) : dim_; }

  /// Calls visit(j, x_j) for every value of a dense row i, or every stored entry of a sparse row i, in order of j.
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
  Index first_column_ = 0;  ///< sparse: column of feature 0 of this view
  const Scalar* values_ = nullptr;
  const Scalar* targets_ = nullptr;
  const Scalar* weights_ = nullptr;
  const std::uint8_t* marks_ = nullptr;
  std::uint8_t mark_ = 0;
  bool selects_marked_ = false;                  ///< true: rows without `mark_` have weight 0; false: rows with it
  const Index* offsets_ = nullptr;               ///< sparse with 64-bit offsets
  const std::int32_t* short_offsets_ = nullptr;  ///< sparse with 32-bit offsets
  const std::int32_t* columns_ = nullptr;
};

extern template class Rows<float>;
extern template class Rows<double>;

}  // namespace dyad
