#include "terminal.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "command.h"

namespace dyad::cli {
namespace {

/// Carriage return and ECMA-48 "erase to end of line".
constexpr const char* erase_line = "\r\x1b[K";

bool is_status_shown = false;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

void erase_status() {
  if (std::exchange(is_status_shown, false)) std::fputs(erase_line, stderr);
}

}  // namespace

bool has_status_line() {
  static const bool is_terminal = isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb";
  return is_terminal;
}

std::string styled(Style style, std::string_view text) {
  static const bool has_color = has_status_line() && environment("NO_COLOR").empty();
  return has_color ? fmt::format("\x1b[{}m{}\x1b[0m", static_cast<int>(style), text) : std::string(text);
}

void show_status(const std::string& text) {
  std::fputs((erase_line + text).c_str(), stderr);
  is_status_shown = true;
}

void write_message(const std::string& text) {
  erase_status();
  std::fputs(text.c_str(), stderr);
}

void print_result(const std::string& text) {
  erase_status();
  if (std::fputs((text + '\n').c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw std::runtime_error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

}  // namespace dyad::cli
