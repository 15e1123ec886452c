// Conversions between Python and C++ objects and the poll for Ctrl-C, shared by the files of this folder.
//
// The folder contains the extension module dyad._core: bindings of the library for the Python package in dyad/*.py. The
// module is private to that package, which validates arguments and converts arrays before it calls the bindings.
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

/// Interval between checks for signals. It is too short for a user to notice a delay after Ctrl-C, and much longer than
/// the time to acquire the GIL.
inline constexpr std::chrono::milliseconds signal_check_interval{20};

inline std::string to_string(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
inline nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

/// Predicate for the `interrupted` hooks of the library. Returns true once a signal handler of Python has raised an
/// exception, for example KeyboardInterrupt for Ctrl-C. Must be called without the GIL; acquires it at most once per
/// signal_check_interval. Not thread-safe.
class SignalCheck {
 public:
  bool operator()() {
    if (raised_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_check_ < signal_check_interval) return false;
    last_check_ = now;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) raised_ = std::make_exception_ptr(nb::python_error());
    return raised_ != nullptr;
  }

  /// Rethrows the exception of the signal handler, if there is one. Requires the GIL.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_;
  std::chrono::steady_clock::time_point last_check_ = std::chrono::steady_clock::now();
};

/// Returns the enumerator with the name `text`, or nothing if `text` has no value.
/// \param choices   pairs of a name and an enumerator
/// \param argument  name of the argument in the error message
/// \throws std::invalid_argument that lists the allowed names
template <typename Choice, typename Choices = std::initializer_list<std::pair<const char*, Choice>>>
std::optional<Choice> parse_choice(const std::optional<std::string>& text, const Choices& choices,
                                   const char* argument) {
  if (!text) return {};
  for (const auto& [name, choice] : choices)
    if (*text == name) return choice;
  std::string names;
  for (const auto& [name, choice] : choices) names += (names.empty() ? "'" : ", '") + std::string(name) + "'";
  throw std::invalid_argument(std::string(argument) + " must be one of " + names + ", got '" + *text + "'");
}

/// Returns a NumPy array that takes ownership of the values, without a copy.
template <typename Number>
nb::object to_array(std::vector<Number> values, std::vector<std::size_t> shape) {
  auto* owned = new std::vector<Number>(std::move(values));
  const nb::capsule owner(owned, [](void* pointer) noexcept { delete static_cast<std::vector<Number>*>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, Number>(owned->data(), shape.size(), shape.data(), owner));
}

template <typename Number>
nb::object to_array(std::vector<Number> values) {
  const std::size_t size = values.size();
  return to_array(std::move(values), {size});
}

/// Binds the reader of files and the statistics of the moment solver (streams.cpp).
void bind_streams(nb::module_& module);

/// Binds distributed training (distributed.cpp).
void bind_distributed(nb::module_& module);

/// Binds the reader of Arrow streams (arrow_stream.cpp).
void bind_arrow(nb::module_& module);

/// Binds the parameters of models by feature (features.cpp).
void bind_features(nb::module_& module);

/// Binds model files and containers (files.cpp).
void bind_files(nb::module_& module);

/// Binds the online learner (row_learner.cpp).
void bind_row_learner(nb::module_& module);

}  // namespace dyad::python
