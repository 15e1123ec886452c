#pragma once

#include <string>
#include <string_view>

namespace dyad {

/// Replaces each byte that is not part of valid UTF-8 by \xXX (hexadecimal). Names in model files must be UTF-8; the
/// replacement keeps names with different invalid bytes distinguishable.
std::string escape_invalid_utf8(std::string_view text);

/// Quotes a text for an error message: its first 24 bytes in single quotes, with unprintable characters escaped. A
/// longer text ends in "...".
std::string quote_text(std::string_view text);

}  // namespace dyad
