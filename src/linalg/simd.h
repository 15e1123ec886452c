#pragma once

#include <dyad/rows.h>

// A function compiled twice; the machine that runs it chooses. Sanitizers start later than the choice.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define DYAD_WIDE_VECTORS __attribute__((target_clones("avx2", "default"), flatten))
#else
#define DYAD_WIDE_VECTORS
#endif

namespace dyad {

/// Four numbers at a time, for whatever vectors the machine has: GCC and Clang make instructions of it. Loops over the
/// factors of one feature have too many arrays in them for a compiler to see that they do not overlap.
template <typename Scalar>
class Lanes {
 public:
  static constexpr Index count = 4;

  explicit Lanes(Scalar all) : values_{all, all, all, all} {}
  explicit Lanes(const Scalar* from) : values_(*reinterpret_cast<const Anywhere*>(from)) {}
  void store(Scalar* to) const { *reinterpret_cast<Anywhere*>(to) = values_; }

  friend Lanes operator+(const Lanes& a, const Lanes& b) { return Lanes(a.values_ + b.values_); }
  friend Lanes operator-(const Lanes& a, const Lanes& b) { return Lanes(a.values_ - b.values_); }
  [[nodiscard]] Scalar sum() const { return (values_[0] + values_[1]) + (values_[2] + values_[3]); }
  friend Lanes operator*(const Lanes& a, const Lanes& b) { return Lanes(a.values_ * b.values_); }

  friend Lanes larger(const Lanes& a, const Lanes& b) { return Lanes(a.values_ > b.values_ ? a.values_ : b.values_); }

  void add_to(Scalar* sums) const { (Lanes(sums) + *this).store(sums); }

 private:
  using Vector __attribute__((vector_size(count * sizeof(Scalar)))) = Scalar;
  using Anywhere __attribute__((vector_size(count * sizeof(Scalar)), aligned(alignof(Scalar)))) = Scalar;
  explicit Lanes(const Vector& values) : values_(values) {}

  Vector values_;
};

/// What is there will be asked for soon. Without the empty instruction, GCC takes a function that fetches, and no more,
/// for one that does nothing.
inline void fetch(const void* place) {
  __builtin_prefetch(place);
  asm volatile("" : : "r"(place));
}

template <typename Number>
void fetch_numbers(const Number* numbers, Index count) {
  constexpr auto line = static_cast<Index>(64 / sizeof(Number));
  for (Index i = 0; i < count; i += line) fetch(numbers + i);
}

}  // namespace dyad
