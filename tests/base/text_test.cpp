#include "base/text.h"

#include <gtest/gtest.h>

#include <dyad/text.h>

namespace dyad {
namespace {

TEST(Text, ValidUtf8IsUnchanged) {
  for (const char* text : {"", "plain", "Größe", "価格", "🎬 film"}) EXPECT_EQ(escape_invalid_utf8(text), text);
}

TEST(Text, InvalidUtf8IsEscaped) {
  EXPECT_EQ(escape_invalid_utf8("Gr\xf6\xdf"
                                "e"),
            "Gr\\xF6\\xDFe");                                        // Latin-1
  EXPECT_EQ(escape_invalid_utf8("cut \xe4\xbe"), "cut \\xE4\\xBE");  // in the middle of a character
  EXPECT_EQ(escape_invalid_utf8("\xc0\xaf \xed\xa0\x80 \xf5"),
            "\\xC0\\xAF \\xED\\xA0\\x80 \\xF5");  // overlong, surrogate, beyond
}

TEST(Text, QuoteEscapesAndTruncates) {
  EXPECT_EQ(quote_text("spam"), "'spam'");
  EXPECT_EQ(quote_text(std::string_view("a\0b\x1b[31m", 8)), "'a\\u0000b\\u001B[31m'");
  EXPECT_EQ(quote_text(std::string(100, 'x')), "'" + std::string(24, 'x') + "...'");
}

/// Inverse of escape_text(), implemented from its documentation.
std::string unescape(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
      continue;
    }
    const char kind = text.at(++i);
    const std::size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    const auto code = digits > 0 ? static_cast<char32_t>(std::stoul(text.substr(i + 1, digits), nullptr, 16)) : U'\0';
    i += digits;
    if (digits == 0)
      plain += kind == 'n' ? '\n' : kind == 'r' ? '\r' : kind == 't' ? '\t' : kind;
    else if (code < 0x80)
      plain += static_cast<char>(code);
    else if (code < 0x800)
      plain += {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    else if (code < 0x10000)
      plain += {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
                static_cast<char>(0x80 | (code & 0x3f))};
    else
      plain += {static_cast<char>(0xf0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3f)),
                static_cast<char>(0x80 | (code >> 6 & 0x3f)), static_cast<char>(0x80 | (code & 0x3f))};
  }
  return plain;
}

TEST(Text, UnprintableCharactersAreEscaped) {
  EXPECT_EQ(escape_unprintable("Größe, 価格, 🎬\\"), "Größe, 価格, 🎬\\");
  EXPECT_EQ(escape_unprintable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\u001B[31m\\u007F");
  EXPECT_EQ(escape_unprintable("a\nb\tc", "\n"), "a\nb\\tc");
  EXPECT_EQ(escape_unprintable("\xe2\x80\xae"
                               "abc\xe2\x81\xa6\xe2\x80\xa8\xef\xbb\xbf\xc2\x9b"),
            "\\u202Eabc\\u2066\\u2028\\uFEFF\\u009B");
  EXPECT_EQ(escape_unprintable("\xf3\xa0\x81\x81"), "\\U000E0041");
  EXPECT_EQ(escape_unprintable("\xff"), "\\xFF");
}

TEST(Text, EscapedTextCanBeRestored) {
  using namespace std::string_literals;
  for (const std::string& text : {""s, "plain"s, "\\n is no newline, this is one: \n"s, "\\\\\x1b\r\t\0|"s,
                                  "\xe2\x80\xae\xc2\x85"s, "🎬\xf3\xa0\x81\x81 価\\u0041"s}) {
    const std::string escaped = escape_text(text);
    EXPECT_EQ(unescape(escaped), text) << escaped;
    EXPECT_EQ(escape_unprintable(escaped), escaped);
  }
}

}  // namespace
}  // namespace dyad
