#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace dyad {

/// Parsed JSON. The destructor of nlohmann::json allocates memory for values with children, and the process ends if
/// there is none; this one removes the children first, from the leaves up.
class JsonDocument {
 public:
  /// Parses text that a stranger may have written. Discarded where it is no JSON, is nested deeper than any model is,
  /// or would take more than about 16 times its size as values in memory.
  explicit JsonDocument(std::string_view text);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  [[nodiscard]] const nlohmann::json& root() const { return root_; }

 private:
  nlohmann::json root_;
};

}  // namespace dyad
