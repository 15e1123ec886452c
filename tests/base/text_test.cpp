#include "base/text.h"

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(Text, KeepsWhatIsUtf8) {
  for (const char* text : {"", "plain", "Größe", "価格", "🎬 film"}) EXPECT_EQ(valid_utf8(text), text);
}

TEST(Text, ReplacesWhatIsNot) {
  EXPECT_EQ(valid_utf8("Gr\xf6\xdf"
                       "e"),
            "Gr\\xF6\\xDFe");                               // Latin-1
  EXPECT_EQ(valid_utf8("cut \xe4\xbe"), "cut \\xE4\\xBE");  // in the middle of a character
  EXPECT_EQ(valid_utf8("\xc0\xaf \xed\xa0\x80 \xf5"),
            "\\xC0\\xAF \\xED\\xA0\\x80 \\xF5");  // overlong, surrogate, beyond
}

TEST(Text, QuotesForPeople) {
  EXPECT_EQ(in_quotes("spam"), "'spam'");
  EXPECT_EQ(in_quotes(std::string_view("a\0b\x1b[31m", 8)), "'a?b?[31m'");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), "'" + std::string(24, 'x') + "...'");
}

}  // namespace
}  // namespace dyad
