#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dyad {

/// Serialized JSON value. It is assembled as text and not as nlohmann::json, whose destructor allocates memory and
/// terminates the process if the allocation fails.
class JsonText {
 public:
  JsonText(bool value);
  JsonText(double value);  ///< `null` if not finite
  template <std::integral Integer>
  JsonText(Integer value) : text_(std::to_string(value)) {}
  /// Invalid UTF-8 is replaced by U+FFFD.
  JsonText(std::string_view value);
  JsonText(const std::string& value) : JsonText(std::string_view(value)) {}
  JsonText(const char* value) : JsonText(std::string_view(value)) {}

  static JsonText array(const std::vector<JsonText>& values);
  static JsonText object(const std::vector<std::pair<std::string, JsonText>>& fields);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  JsonText() = default;

  std::string text_;
};

}  // namespace dyad
