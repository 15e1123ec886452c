#pragma once

#include <map>
#include <string>
#include <vector>

namespace dyad {

/// Named arrays that the driver and the workers exchange, serialized in the safetensors format.
struct Message {
  std::string type;     ///< "question" for requests, "statistics" for responses
  std::string subject;  ///< requests: "rows"; responses: fingerprint of the request or the model
  std::map<std::string, std::vector<double>> arrays{};

  [[nodiscard]] std::string to_bytes() const;
  /// Throws DataError for the file `name` if the bytes are damaged or have another type.
  static Message from_bytes(const std::string& bytes, const std::string& type, const char* name);
};

/// 64-bit hash of the bytes as 16 hexadecimal digits.
std::string fingerprint(const std::string& bytes);

}  // namespace dyad
