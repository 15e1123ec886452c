#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// One named array: its numbers as bytes, little-endian, in C order.
struct Tensor {
  std::string dtype;  ///< F64, F32, I64, I32 or U8
  std::vector<Index> shape;
  std::string bytes;
};

/// Named arrays and a few words about them, in the safetensors layout, which Python reads without us: the length of a
/// JSON header, the header, the arrays one behind the other.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;

  [[nodiscard]] std::string to_bytes() const;

  /// Throws DataError, naming `file`, for bytes that are cut off, damaged or something else. Trusts nothing that it has
  /// not checked, and allocates no more than a small multiple of what there is.
  static Safetensors from_bytes(const std::string& bytes, const std::string& file);

  /// The JSON text of the header; empty if `bytes` are too short for the length they state.
  static std::string_view header_of(std::string_view bytes);
};

/// Prefix of metadata that hold free-form text of the program that wrote a file.
inline constexpr const char* annotation_prefix = "annotation.";

/// The metadata whose names begin with `prefix`, by the rest of the name.
std::map<std::string, std::string> metadata_with_prefix(const Safetensors& file, const std::string& prefix);

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

template <typename Number>
std::vector<Number> numbers_of(const Tensor& tensor) {
  std::vector<Number> numbers(tensor.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), tensor.bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

}  // namespace dyad
