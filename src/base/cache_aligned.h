#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Allocator that aligns memory to cache lines. If the numbers of each feature fill whole cache lines, no line contains
/// numbers of two features. Allocations of at least `min_mapped_bytes` are mapped from the operating system (mmap) and
/// returned to it on deallocation, so that they do not fragment the heap.
template <typename Number>
struct CacheAlignedAllocator {
  using value_type = Number;
  static constexpr std::size_t line_bytes = 64;  ///< cache line of x86-64 and most ARM cores
  static constexpr Index numbers_per_line = static_cast<Index>(line_bytes / sizeof(Number));
  /// 4 MiB. Every allocation of this size contains at least one aligned huge page of 2 MiB (x86-64), so that
  /// MADV_HUGEPAGE has an effect.
  static constexpr std::size_t min_mapped_bytes = std::size_t{1} << 22;

  CacheAlignedAllocator() = default;
  template <typename Other>
  explicit CacheAlignedAllocator(const CacheAlignedAllocator<Other>&) {}

  Number* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(Number)) throw std::bad_alloc();
    const std::size_t bytes = count * sizeof(Number);
    if (bytes < min_mapped_bytes) return static_cast<Number*>(::operator new(bytes, std::align_val_t(line_bytes)));
    void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    (void)::madvise(pages, bytes, MADV_HUGEPAGE);  // fewer page faults on first use
    return static_cast<Number*>(pages);
  }
  void deallocate(Number* numbers, std::size_t count) {
    if (count * sizeof(Number) < min_mapped_bytes)
      ::operator delete(numbers, std::align_val_t(line_bytes));
    else
      ::munmap(numbers, count * sizeof(Number));
  }

  friend bool operator==(const CacheAlignedAllocator&, const CacheAlignedAllocator&) { return true; }
};

/// Vector for arrays whose size is proportional to the number of rows, entries or features.
template <typename Number>
using CacheAlignedVector = std::vector<Number, CacheAlignedAllocator<Number>>;

}  // namespace dyad
