#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dyad {

/// JSON as text. It is not built from values of nlohmann::json: their destructors allocate memory, so that the process
/// would end if there is none.
class JsonText {
 public:
  JsonText(bool value);
  JsonText(double value);  ///< null if it is not finite
  template <std::integral Integer>
  JsonText(Integer value) : text_(std::to_string(value)) {}
  /// Bytes that are not UTF-8 are replaced by U+FFFD.
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
