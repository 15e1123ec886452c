// Bytes, choices, Ctrl-C and arrays between Python and the library.
#pragma once

#include <chrono>
#include <exception>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "array_rows.h"

namespace dyad::python {

inline std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
inline nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

/// Asked often, from C++ without the GIL: whether the user has pressed Ctrl-C.
class Interruption {
 public:
  bool operator()() {
    if (raised_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(20)) return false;
    last_ = now;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) raised_ = std::make_exception_ptr(nb::python_error());
    return raised_ != nullptr;
  }

  /// What was raised goes on its way.
  void finish() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// The choice that a word means; nothing where there is none.
template <typename Choice, typename Choices = std::initializer_list<std::pair<const char*, Choice>>>
std::optional<Choice> chosen(const std::optional<std::string>& word, const Choices& choices, const char* name) {
  if (!word) return {};
  for (const auto& [known, choice] : choices)
    if (*word == known) return choice;
  std::string all;
  for (const auto& [known, choice] : choices) all += (all.empty() ? "'" : ", '") + std::string(known) + "'";
  throw std::invalid_argument(std::string(name) + " must be one of " + all + ", got '" + *word + "'");
}

/// Takes the numbers over, without copying them.
template <typename Number>
nb::object array_of(std::vector<Number> numbers, std::vector<std::size_t> shape) {
  auto* owned = new std::vector<Number>(std::move(numbers));
  const nb::capsule owner(owned, [](void* of) noexcept { delete static_cast<std::vector<Number>*>(of); });
  return nb::cast(nb::ndarray<nb::numpy, Number>(owned->data(), shape.size(), shape.data(), owner));
}

template <typename Number>
nb::object array_of(std::vector<Number> numbers) {
  const std::size_t size = numbers.size();
  return array_of(std::move(numbers), {size});
}

/// Files as they are, and statistics that add: streams.cpp.
void bind_streams(nb::module_& module);

/// Rows in many parts: parts.cpp.
void bind_parts(nb::module_& module);

/// Model files and containers: files.cpp.
void bind_files(nb::module_& module);

/// The row-by-row learner: row_learner.cpp.
void bind_row_learner(nb::module_& module);

}  // namespace dyad::python
