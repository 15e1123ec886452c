#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dyad {

using Index = std::ptrdiff_t;

/// A block of rows that somebody else owns: dense (row-major) or sparse (compressed rows), with their targets.
/// Only the factories make one, and they check it; after that it is passed around by value.
template <typename Scalar>
class Rows {
 public:
  /// `values` holds count x dim numbers, row after row. `targets` holds one number per row, or nothing.
  static Rows dense(std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  /// Row i has the entries [offsets[i], offsets[i + 1]) of `columns` and `values`; columns lie in [0, dim).
  static Rows sparse(std::span<const Index> offsets, std::span<const std::int32_t> columns,
                     std::span<const Scalar> values, Index dim, std::span<const Scalar> targets = {});

  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] Index dim() const { return dim_; }
  [[nodiscard]] bool is_sparse() const { return offsets_ != nullptr; }
  [[nodiscard]] bool has_targets() const { return targets_ != nullptr; }

  [[nodiscard]] std::span<const Scalar> targets() const {
    return {targets_, static_cast<std::size_t>(has_targets() ? count_ : 0)};
  }

  /// The rows [first, first + count), still owned by the same somebody.
  [[nodiscard]] Rows slice(Index first, Index count) const;

  /// Dense rows only: the first number of row i.
  [[nodiscard]] const Scalar* row(Index i) const { return values_ + i * dim_; }

  /// Sparse rows only: where row i begins in columns() and values(), for i up to and including count().
  [[nodiscard]] Index offset(Index i) const { return offsets_[i]; }
  [[nodiscard]] const std::int32_t* columns() const { return columns_; }
  [[nodiscard]] const Scalar* values() const { return values_; }

 private:
  Index count_ = 0;
  Index dim_ = 0;
  const Scalar* values_ = nullptr;
  const Scalar* targets_ = nullptr;
  const Index* offsets_ = nullptr;
  const std::int32_t* columns_ = nullptr;
};

extern template class Rows<float>;
extern template class Rows<double>;

}  // namespace dyad
