#pragma once

#include <string_view>

namespace dyad {

/// Parses a decimal number at the front of [begin, end), rounded to the nearest double. Returns the end of the number,
/// or nullptr if there is none. Overflow gives infinity, underflow 0; "inf" and "nan" are accepted.
const char* parse_number(const char* begin, const char* end, double& value);

/// Returns true if the whole text is one number.
inline bool parse_number(std::string_view text, double& value) {
  const char* end = text.data() + text.size();
  return parse_number(text.data(), end, value) == end && !text.empty();
}

}  // namespace dyad
