#pragma once

#include <string>
#include <string_view>

namespace dyad {

/// Replaces characters that are invisible, or that change the display of adjacent characters, by escape sequences:
/// control characters (general category Cc), format characters (Cf, including bidirectional controls such as U+202E),
/// and line and paragraph separators (U+2028, U+2029). The sequences are \\n, \\r, \\t, \\uXXXX, and \\UXXXXXXXX above
/// U+FFFF, with the code point in hexadecimal. A byte that is not UTF-8 becomes \\xXX.
/// \param text  text to escape
/// \param kept  characters that are not escaped
std::string escape_unprintable(std::string_view text, std::string_view kept = "");

/// As escape_unprintable(), and doubles each backslash. Different texts have different results, so that the text can be
/// restored.
std::string escape_text(std::string_view text);

}  // namespace dyad
