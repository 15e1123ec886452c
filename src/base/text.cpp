#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include <dyad/text.h>

namespace dyad {
namespace {

/// Bytes of the UTF-8 character at the start of a text that is not empty; 0 if it is not valid UTF-8 (RFC 3629).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool invalid = (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf4 && byte(1) >= 0x90);
  return overlong || invalid ? 0 : length;  // invalid: surrogates and code points above U+10FFFF
}

/// Code point of a valid UTF-8 character.
std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0x7fU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

/// True for the general categories Cc, Cf, Zl and Zp of Unicode 15.1. The ranges are sorted.
bool is_unprintable(std::uint32_t code) {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 23> ranges{{
      {0x0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},
      {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x180E, 0x180E},
      {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x2064},   {0x2066, 0x206F},   {0xFEFF, 0xFEFF},
      {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
      {0x1D173, 0x1D17A}, {0xE0001, 0xE0001}, {0xE0020, 0xE007F},
  }};
  const auto range =
      std::lower_bound(ranges.begin(), ranges.end(), code,
                       [](const auto& interval, std::uint32_t value) { return interval.second < value; });
  return range != ranges.end() && range->first <= code;
}

std::string escape_sequence(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code > 0xFFFF ? fmt::format("\\U{:08X}", code) : fmt::format("\\u{:04X}", code);
}

/// Replaces bytes that are not UTF-8 by \xXX, and characters for which `needs_escape` is true by escape sequences.
template <typename NeedsEscape>
std::string escape(std::string_view text, const NeedsEscape& needs_escape) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0)
      escaped += fmt::format("\\x{:02X}", static_cast<unsigned char>(text.front()));
    else if (needs_escape(character))
      escaped += escape_sequence(code_point(character));
    else
      escaped += character;
    text.remove_prefix(character.size());
  }
  return escaped;
}

}  // namespace

std::string escape_unprintable(std::string_view text, std::string_view kept) {
  return escape(text, [&](std::string_view character) {
    return is_unprintable(code_point(character)) && kept.find(character) == std::string_view::npos;
  });
}

std::string escape_text(std::string_view text) {
  std::string doubled;
  for (const char letter : text) doubled += letter == '\\' ? std::string("\\\\") : std::string(1, letter);
  return escape_unprintable(doubled);
}

std::string escape_invalid_utf8(std::string_view text) {
  return escape(text, [](std::string_view) { return false; });
}

std::string quote_text(std::string_view text) {
  constexpr std::size_t max_bytes = 24;  // limits the length of messages
  return "'" + escape_unprintable(text.substr(0, max_bytes)) + (text.size() > max_bytes ? "...'" : "'");
}

}  // namespace dyad
