#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Memory that begins with a cache line, so that a feature whose numbers fill whole lines touches no other's. Large
/// pieces are pages of their own, which go back to the system when they are let go: a heap would keep them as holes.
template <typename Number>
struct CacheAligned {
  using value_type = Number;
  static constexpr std::size_t line_bytes = 64;
  static constexpr Index line = static_cast<Index>(line_bytes / sizeof(Number));  ///< numbers in a line
  static constexpr std::size_t large = std::size_t{1} << 22;                      ///< in bytes

  CacheAligned() = default;
  template <typename Other>
  explicit CacheAligned(const CacheAligned<Other>&) {}

  Number* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(Number)) throw std::bad_alloc();
    const std::size_t bytes = count * sizeof(Number);
    if (bytes < large) return static_cast<Number*>(::operator new(bytes, std::align_val_t(line_bytes)));
    void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    (void)::madvise(pages, bytes, MADV_HUGEPAGE);  // the system clears a few large pages faster than many small ones
    return static_cast<Number*>(pages);
  }
  void deallocate(Number* numbers, std::size_t count) {
    if (count * sizeof(Number) < large)
      ::operator delete(numbers, std::align_val_t(line_bytes));
    else
      ::munmap(numbers, count * sizeof(Number));
  }

  friend bool operator==(const CacheAligned&, const CacheAligned&) { return true; }
};

/// For one number or more of every row, or of every feature.
template <typename Number>
using BigVector = std::vector<Number, CacheAligned<Number>>;

}  // namespace dyad
