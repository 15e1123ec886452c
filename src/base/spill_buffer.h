#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/cache_aligned.h"
#include "base/private_file.h"

namespace dyad {

/// Append-only buffer that is read as one contiguous span. move_to_disk() switches from memory to an unlinked temporary
/// file. Failures of that file throw PrivateFileError. Not thread-safe.
template <typename Number>
class SpillBuffer {
 public:
  void append(Number number) {
    tail_.push_back(number);
    if (file_ && tail_.size() >= numbers_per_write) flush();
  }

  /// Reserves memory for `size` numbers.
  void reserve(std::size_t size) { tail_.reserve(size); }

  /// Writes the numbers to a file in `folder`. Later numbers are also written there.
  void move_to_disk(const std::string& folder) {
    file_ = std::make_unique<PrivateFile>(folder);
    flush();
    tail_.shrink_to_fit();
  }

  [[nodiscard]] std::size_t size() const { return disk_count_ + tail_.size(); }

  /// All numbers, for reading and modification. The buffer owns the span; append() and move_to_disk() invalidate it. Do
  /// not append to a buffer on disk afterwards.
  [[nodiscard]] std::span<Number> all() {
    if (!file_) {
      tail_.shrink_to_fit();
      return tail_;
    }
    flush();
    return {static_cast<Number*>(file_->map()), disk_count_};
  }

 private:
  /// Numbers per write() to the file (2 MiB of doubles). Controls the memory of the tail and the number of system
  /// calls. Sensitivity: docs/constants.md.
  static constexpr std::size_t numbers_per_write = std::size_t{1} << 18;

  void flush() {
    if (tail_.empty()) return;
    file_->append(tail_.data(), tail_.size() * sizeof(Number));
    disk_count_ += tail_.size();
    tail_.clear();
  }

  CacheAlignedVector<Number> tail_;    ///< numbers that are not in the file
  std::unique_ptr<PrivateFile> file_;  ///< nullptr: all numbers are in memory
  std::size_t disk_count_ = 0;         ///< numbers in the file
};

}  // namespace dyad
