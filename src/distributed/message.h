#pragma once

#include <map>
#include <string>
#include <vector>

namespace dyad {

/// Named arrays on their way between machines, in the layout of safetensors.
struct Message {
  std::string sort;   ///< "question" or "statistics"
  std::string about;  ///< what is asked, or which question was answered
  std::map<std::string, std::vector<double>> arrays{};

  [[nodiscard]] std::string to_bytes() const;
  /// Throws DataError for what is none of this sort. `name`: for the message.
  static Message from_bytes(const std::string& bytes, const std::string& sort, const char* name);
};

/// Short, and different for different bytes.
std::string fingerprint(const std::string& bytes);

}  // namespace dyad
