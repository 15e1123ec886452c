#pragma once

#include <string>
#include <string_view>

namespace dyad::cli {

/// Styles of text on a terminal. The values are SGR codes of ECMA-48.
enum class Style : int { bold = 1, red = 31, yellow = 33 };

/// Returns the text in this style if standard error is a terminal and NO_COLOR is empty, else the plain text.
std::string styled(Style style, std::string_view text);

/// True if standard error is a terminal that can erase a line (TERM is not "dumb").
bool has_status_line();

/// Shows a line at the bottom of the terminal. The next status or message replaces it.
void show_status(const std::string& text);

/// Writes to standard error. Write errors are ignored.
void write_message(const std::string& text);

}  // namespace dyad::cli
