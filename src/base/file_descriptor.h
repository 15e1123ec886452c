#pragma once

#include <utility>

namespace dyad {

/// Owns an open file descriptor and closes it. Descriptors 0 to 2 are moved to a number above 2: in a process whose
/// standard error is closed, a file opened there would receive that process's messages.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes ownership of what open() or a similar call returned; a negative number stands for none and keeps errno.
  explicit FileDescriptor(int number);
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

  /// False if the system reports a failure on closing.
  bool close();

 private:
  int number_ = -1;
};

}  // namespace dyad
