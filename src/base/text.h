#pragma once

#include <string>
#include <string_view>

namespace dyad {

/// The text with every byte that is not UTF-8 written as \xE9: names must survive a model file, and stay different.
std::string valid_utf8(std::string_view text);

/// The text for a message: its first characters, with unprintable ones escaped, in quotes.
std::string in_quotes(std::string_view text);

}  // namespace dyad
