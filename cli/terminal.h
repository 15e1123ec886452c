#pragma once

#include <string>
#include <string_view>

namespace dyad::cli {

enum class Style : int { bold = 1, red = 31, yellow = 33 };

/// The text as it is, or in this style where standard error is a terminal that shows it and NO_COLOR is not set.
std::string styled(Style style, std::string_view text);

/// Whether standard error is a terminal on which a line can be drawn again.
bool has_status_line();

/// A last line on the terminal that the next one, or the next text, replaces.
void show_status(const std::string& text);

/// Writes to standard error, as well as that goes: a message that cannot be written stops nothing.
void write_message(const std::string& text);

}  // namespace dyad::cli
