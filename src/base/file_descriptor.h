#pragma once

#include <utility>

namespace dyad {

/// Owns a file descriptor and closes it on destruction. A descriptor from 0 to 2 is duplicated to a number above 2. A
/// process whose standard error is closed would otherwise write its messages to the file that is opened as
/// descriptor 2.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes ownership of the result of open() or a similar call. A negative number means no descriptor; errno is kept.
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

  /// Returns false if close() of the system fails. Does nothing and returns true if no descriptor is open.
  bool close();

 private:
  int number_ = -1;  ///< -1: none
};

}  // namespace dyad
