#pragma once

#include <string_view>

namespace dyad {

/// Reads a decimal number at the front of [begin, end), correctly rounded. Returns where it ends, or nullptr where
/// there is none. What is too large comes back as infinity, what is too small as 0; "inf" and "nan" are read as such.
const char* parse_number(const char* begin, const char* end, double& value);

/// True if all of the text is one number.
inline bool parse_number(std::string_view text, double& value) {
  const char* end = text.data() + text.size();
  return parse_number(text.data(), end, value) == end && !text.empty();
}

}  // namespace dyad
