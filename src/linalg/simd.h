#pragma once

#include <dyad/rows.h>

// Compiles a function, with all its calls inlined, for AVX2 and for the default target. The loader selects the
// version for the CPU (ifunc). Not used with sanitizers, because the selection runs before the sanitizer is
// initialized.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define DYAD_TARGET_CLONES __attribute__((target_clones("avx2", "default"), flatten))
#else
#define DYAD_TARGET_CLONES
#endif

namespace dyad {

/// `width` numbers that are processed by SIMD instructions. Uses the vector extensions of GCC and Clang. Loops over the
/// factors of a feature use this class, because compilers do not vectorize these loops: they access several arrays, and
/// the compiler cannot prove that the arrays do not overlap.
/// The default width is that of an AVX2 register of doubles; an AVX2 register contains 8 floats.
template <typename Scalar, Index width = 4>
class SimdVector {
 public:
  static constexpr Index count = width;

  /// Sets all numbers to `value`.
  explicit SimdVector(Scalar value) : values_(value - Vector{}) {}
  /// Loads `width` numbers. The address needs no alignment beyond that of Scalar.
  explicit SimdVector(const Scalar* from) : values_(*reinterpret_cast<const Unaligned*>(from)) {}
  void store(Scalar* to) const { *reinterpret_cast<Unaligned*>(to) = values_; }

  friend SimdVector operator+(const SimdVector& a, const SimdVector& b) { return SimdVector(a.values_ + b.values_); }
  friend SimdVector operator-(const SimdVector& a, const SimdVector& b) { return SimdVector(a.values_ - b.values_); }
  [[nodiscard]] Scalar sum() const {
    if constexpr (width == 4)
      return (values_[0] + values_[1]) + (values_[2] + values_[3]);
    else
      return (SimdVector<Scalar, width / 2>(reinterpret_cast<const Scalar*>(&values_)) +
              SimdVector<Scalar, width / 2>(reinterpret_cast<const Scalar*>(&values_) + width / 2))
          .sum();
  }
  friend SimdVector operator*(const SimdVector& a, const SimdVector& b) { return SimdVector(a.values_ * b.values_); }

  /// Component-wise maximum.
  friend SimdVector cwise_max(const SimdVector& a, const SimdVector& b) {
    return SimdVector(a.values_ > b.values_ ? a.values_ : b.values_);
  }

  /// sums[0..width) += these numbers.
  void add_to(Scalar* sums) const { (SimdVector(sums) + *this).store(sums); }

 private:
  using Vector __attribute__((vector_size(count * sizeof(Scalar)))) = Scalar;
  using Unaligned __attribute__((vector_size(count * sizeof(Scalar)), aligned(alignof(Scalar)))) = Scalar;
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
