#pragma once

#include <string>
#include <string_view>

namespace dyad {

/// The text with every character that has no visible form, or that changes how its neighbours are shown, as an escape
/// sequence: control characters (general category Cc), format characters (Cf, among them the bidirectional controls
/// such as U+202E), and line and paragraph separators (U+2028, U+2029). The sequences are \n, \r, \t, \uXXXX, and
/// \UXXXXXXXX above U+FFFF, with the code point in hexadecimal. A byte that is not UTF-8 becomes \xXX. Characters in
/// `kept` stay.
std::string escape_unprintable(std::string_view text, std::string_view kept = "");

/// The same with each backslash of the text doubled: different texts stay different, and the text can be restored.
std::string escape_text(std::string_view text);

}  // namespace dyad
