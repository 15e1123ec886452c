#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Array of numbers, little-endian and in row-major order.
struct Tensor {
  std::string dtype;         ///< F64, F32, I64, I32 or U8
  std::vector<Index> shape;  ///< empty: a scalar
  std::string bytes;         ///< elements; the size is the product of the shape times the element size
};

/// Tensor whose elements belong to the caller, who keeps them alive.
struct TensorView {
  std::string dtype;
  std::vector<Index> shape;
  std::string_view bytes;
};

/// Named tensors and text metadata in the safetensors layout (https://huggingface.co/docs/safetensors): the length of a
/// JSON header as a 64-bit integer, the header, and the concatenated tensors.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;
  /// Further tensors, which are read and written without a copy.
  std::map<std::string, TensorView> views;

  /// Calls sink() with consecutive parts of the file.
  void write(const std::function<void(std::string_view)>& sink) const;
  [[nodiscard]] std::string to_bytes() const;

  /// Parses untrusted bytes. Throws DataError that names `file` if they are truncated, damaged or in another format.
  /// Allocates at most a small multiple of their size.
  static Safetensors from_bytes(const std::string& bytes, const std::string& file);

  /// As from_bytes(), but returns views of `bytes`, which the caller keeps alive.
  static Safetensors view_bytes(std::string_view bytes, const std::string& file);

  /// The tensor or view of this name; null if there is none.
  [[nodiscard]] std::optional<TensorView> find(const std::string& name) const;

  /// JSON text of the header; empty if `bytes` ends before the header does.
  static std::string_view header_of(std::string_view bytes);
};

/// Prefix of metadata entries with free-form text of the program that wrote a file.
inline constexpr const char* annotation_prefix = "annotation.";

/// Metadata entries whose names start with `prefix`. The keys of the result do not contain the prefix.
std::map<std::string, std::string> metadata_with_prefix(const Safetensors& file, const std::string& prefix);

/// Safetensors name of a type, such as F64 for double.
template <typename Number>
std::string dtype_of() {
  const char* kind = std::is_floating_point_v<Number> ? "F" : std::is_signed_v<Number> ? "I" : "U";
  return kind + std::to_string(8 * sizeof(Number));
}

template <typename Number>
Tensor make_tensor(const std::vector<Number>& numbers, std::vector<Index> shape) {
  return {dtype_of<Number>(), std::move(shape),
          std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number))};
}

/// The caller keeps the numbers alive.
template <typename Number>
TensorView view_tensor(std::span<const Number> numbers, std::vector<Index> shape) {
  return {dtype_of<Number>(), std::move(shape), {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()}};
}

/// Elements of a tensor or view whose dtype is dtype_of<Number>().
template <typename Number, typename AnyTensor>
std::vector<Number> tensor_values(const AnyTensor& tensor) {
  std::vector<Number> numbers(tensor.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor.bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

}  // namespace dyad
