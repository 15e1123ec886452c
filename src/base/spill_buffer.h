#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/cache_aligned.h"
#include "base/private_file.h"

namespace dyad {

/// Numbers put one behind the other, to be looked at when all are there: in memory or, from a word on, on disk.
template <typename Number>
class SpillBuffer {
 public:
  void put(Number number) {
    tail_.push_back(number);
    if (file_ && tail_.size() >= at_once) flush();
  }

  void make_room(std::size_t size) { tail_.reserve(size); }

  void move_to_disk(const std::string& folder) {
    file_ = std::make_unique<PrivateFile>(folder);
    flush();
    tail_.shrink_to_fit();
  }

  [[nodiscard]] std::size_t size() const { return on_disk_ + tail_.size(); }

  /// On disk, nothing is put behind them afterwards.
  [[nodiscard]] std::span<Number> all() {
    if (!file_) {
      tail_.shrink_to_fit();
      return tail_;
    }
    flush();
    return {static_cast<Number*>(file_->map()), on_disk_};
  }

 private:
  static constexpr std::size_t at_once = std::size_t{1} << 18;

  void flush() {
    if (tail_.empty()) return;
    file_->append(tail_.data(), tail_.size() * sizeof(Number));
    on_disk_ += tail_.size();
    tail_.clear();
  }

  BigVector<Number> tail_;  ///< what is not on disk
  std::unique_ptr<PrivateFile> file_;
  std::size_t on_disk_ = 0;
};

}  // namespace dyad
