#include "serialization/json_text.h"

#include <nlohmann/json.hpp>

namespace dyad {
namespace {

using nlohmann::json;

/// JSON text of a value without children. Its destructor allocates nothing.
std::string serialize(const json& scalar) { return scalar.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

JsonText::JsonText(bool value) : text_(value ? "true" : "false") {}
JsonText::JsonText(double value) : text_(serialize(value)) {}
JsonText::JsonText(std::string_view value) : text_(serialize(value)) {}

JsonText JsonText::array(const std::vector<JsonText>& values) {
  JsonText result;
  for (const JsonText& value : values) result.text_ += (result.text_.empty() ? "[" : ",") + value.text_;
  result.text_ += values.empty() ? "[]" : "]";
  return result;
}

JsonText JsonText::object(const std::vector<std::pair<std::string, JsonText>>& fields) {
  JsonText result;
  for (const auto& [name, value] : fields)
    result.text_ += (result.text_.empty() ? "{" : ",") + JsonText(name).text_ + ":" + value.text_;
  result.text_ += fields.empty() ? "{}" : "}";
  return result;
}

}  // namespace dyad
