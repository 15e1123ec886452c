#pragma once

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dyad/error.h>
#include <nlohmann/json.hpp>

#include "serialization/safetensors.h"

namespace dyad {

/// Typed access to the metadata, JSON fields and tensors of an untrusted model file. Every function throws DataError
/// that names the file if an entry is missing or has the wrong type. Does not own the parsed file and the path; the
/// caller keeps them alive.
class ModelReader {
 public:
  /// `path`: name of the file in error messages.
  ModelReader(const Safetensors& file, const std::string& path) : file_(file), path_(path) {}

  [[noreturn]] void fail(const std::string& message) const { throw DataError(path_, 0, 0, message); }
  void require(bool condition, const std::string& error) const {
    if (!condition) fail("the model is damaged: " + error);
  }

  [[nodiscard]] const std::string& metadata(const std::string& name) const {
    const auto found = file_.metadata.find(name);
    require(found != file_.metadata.end(), "the metadata entry '" + name + "' is missing");
    return found->second;
  }

  /// Value of an enumeration that is stored as one of `names`.
  template <typename Enum, std::size_t count>
  [[nodiscard]] Enum enum_field(const std::array<std::pair<const char*, Enum>, count>& names,
                                const nlohmann::json& object, const char* name) const {
    const auto text = field<std::string>(object, name);
    for (const auto& [known, value] : names)
      if (text == known) return value;
    fail("the model has the unknown " + std::string(name) + " '" + text + "'");
  }

  /// Field of any type.
  [[nodiscard]] const nlohmann::json& child(const nlohmann::json& object, const char* name) const {
    require(object.is_object() && object.contains(name), "the field '" + std::string(name) + "' is missing");
    return object[name];
  }

  /// Field of type bool, double, std::string or an integer.
  template <typename Value>
  [[nodiscard]] Value field(const nlohmann::json& object, const char* name) const {
    const nlohmann::json& value = child(object, name);
    const bool has_type = std::is_same_v<Value, bool>     ? value.is_boolean()
                          : std::is_integral_v<Value>     ? value.is_number_integer()
                          : std::is_same_v<Value, double> ? value.is_number()
                                                          : value.is_string();
    require(has_type, "the field '" + std::string(name) + "' has the wrong type");
    return value.template get<Value>();
  }

  /// False if the field is missing.
  [[nodiscard]] bool optional_flag(const nlohmann::json& object, const char* name) const {
    return object.is_object() && object.contains(name) && field<bool>(object, name);
  }

  [[nodiscard]] TensorView tensor(const std::string& name) const {
    std::optional<TensorView> found = file_.find(name);
    require(found.has_value(), "the tensor '" + name + "' is missing");
    return std::move(*found);
  }

  [[nodiscard]] bool has_tensor(const std::string& name) const { return file_.find(name).has_value(); }

  /// Elements of a tensor whose dtype must be that of Number.
  template <typename Number>
  [[nodiscard]] std::vector<Number> values(const std::string& name) const {
    const TensorView found = tensor(name);
    require(found.dtype == dtype_of<Number>(), "the tensor '" + name + "' has the wrong dtype");
    return tensor_values<Number>(found);
  }

  /// Elements of an F32 or F64 tensor.
  [[nodiscard]] std::vector<double> float_values(const std::string& name) const {
    const TensorView found = tensor(name);
    if (found.dtype != dtype_of<float>()) return values<double>(name);
    const std::vector<float> numbers = tensor_values<float>(found);
    return {numbers.begin(), numbers.end()};
  }

 private:
  const Safetensors& file_;
  const std::string& path_;
};

}  // namespace dyad
