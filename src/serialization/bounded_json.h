#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace dyad {

/// src/serialization: the safetensors layout, JSON, checksums, and the model files and containers built from them.
///
/// JsonDocument is parsed JSON with bounded depth and memory. The destructor of nlohmann::json allocates memory for
/// values with children and terminates the process if the allocation fails; ~JsonDocument() allocates nothing, because
/// it removes the children first, starting at the leaves.
class JsonDocument {
 public:
  /// Parses untrusted text. root() is `discarded` if the text is not JSON, is nested more than 8 levels deep, or is
  /// estimated to need more than 16 times its size plus 64 KiB in memory.
  explicit JsonDocument(std::string_view text);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  [[nodiscard]] const nlohmann::json& root() const { return root_; }

 private:
  nlohmann::json root_;
};

}  // namespace dyad
