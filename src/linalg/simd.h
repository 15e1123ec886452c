#pragma once

#include <dyad/rows.h>

// Compiles a function, with all its calls inlined, for AVX2 and for the default target. The loader selects the
// version for the CPU (ifunc). Not used with sanitizers, because the selection runs before the sanitizer is
// initialized.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define DYAD_TARGET_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten))
#else
#define DYAD_TARGET_CLONES
#endif

namespace dyad {

/// A few numbers that are processed by SIMD instructions. Uses the vector extensions of GCC and Clang. Loops over the
/// factors of a feature use this class, because compilers do not vectorize these loops: they access several arrays, and
/// the compiler cannot prove that the arrays do not overlap.
template <typename Scalar, int lanes = 4>
requires(lanes == 4 || lanes == 8) class SimdVector {
 public:
  static constexpr Index count = lanes;  ///< default: doubles of an AVX2 register; two SSE2 registers without AVX2

  /// Sets all numbers to 0.
  SimdVector() : values_{} {}
  /// Sets all numbers to `value`.
  explicit SimdVector(Scalar value) : values_(value - Vector{}) {}
  /// Loads the numbers. The address needs no alignment beyond that of Scalar.
  explicit SimdVector(const Scalar* from) : values_(*reinterpret_cast<const Unaligned*>(from)) {}
  /// Four numbers.
  SimdVector(Scalar a, Scalar b, Scalar c, Scalar d) requires(lanes == 4) : values_{a, b, c, d} {}
  [[nodiscard]] Scalar operator[](int lane) const { return values_[lane]; }
  void store(Scalar* to) const { *reinterpret_cast<Unaligned*>(to) = values_; }

  friend SimdVector operator+(const SimdVector& a, const SimdVector& b) { return SimdVector(a.values_ + b.values_); }
  friend SimdVector operator-(const SimdVector& a, const SimdVector& b) { return SimdVector(a.values_ - b.values_); }
  friend SimdVector operator*(const SimdVector& a, const SimdVector& b) { return SimdVector(a.values_ * b.values_); }
  [[nodiscard]] Scalar sum() const requires(lanes == 4) {
    return (values_[0] + values_[1]) + (values_[2] + values_[3]);
  }
  /// Sums of four numbers: lane i contains the sum of the lanes i, i + 4, and so on.
  [[nodiscard]] SimdVector<Scalar, 4> partial_sums() const {
    if constexpr (lanes == 4)
      return *this;
    else
      return SimdVector<Scalar, 4>(values_[0] + values_[4], values_[1] + values_[5], values_[2] + values_[6],
                                   values_[3] + values_[7]);
  }

  /// Component-wise maximum.
  friend SimdVector cwise_max(const SimdVector& a, const SimdVector& b) {
    return SimdVector(a.values_ > b.values_ ? a.values_ : b.values_);
  }

  /// sums[0, count) += these numbers.
  void add_to(Scalar* sums) const { (SimdVector(sums) + *this).store(sums); }

 private:
  using Vector __attribute__((vector_size(lanes * sizeof(Scalar)))) = Scalar;
  using Unaligned __attribute__((vector_size(lanes * sizeof(Scalar)), aligned(alignof(Scalar)))) = Scalar;
  explicit SimdVector(const Vector& values) : values_(values) {}

  Vector values_;
};

/// Prefetches the cache line of an address. The empty asm statement keeps GCC from removing calls of functions that
/// only prefetch and have no other effect.
inline void prefetch_cache_line(const void* address) {
  __builtin_prefetch(address);
  asm volatile("" : : "r"(address));
}

/// Prefetches the cache lines of `count` numbers.
template <typename Number>
void prefetch_range(const Number* numbers, Index count) {
  constexpr std::size_t line_bytes = 64;  // cache line of x86-64 and most ARM cores
  constexpr auto numbers_per_line = static_cast<Index>(line_bytes / sizeof(Number));
  for (Index i = 0; i < count; i += numbers_per_line) prefetch_cache_line(numbers + i);
}

}  // namespace dyad
