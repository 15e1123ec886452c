#include "io/parse_number.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

TEST(ParseNumber, RoundsLikeTheStandardLibrary) {
  Random random(1, 0);
  const auto digits = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += static_cast<char>('0' + static_cast<int>(random.uniform() * 10));
    return text;
  };
  for (int trial = 0; trial < 200000; ++trial) {
    std::string text = random.uniform() < 0.5 ? "-" : "";
    text += digits(static_cast<int>(random.uniform() * 12));
    if (random.uniform() < 0.7) text += "." + digits(static_cast<int>(random.uniform() * 18));
    if (random.uniform() < 0.2) text += "e" + std::to_string(static_cast<int>(random.uniform() * 60) - 30);
    double value = 0;
    char* end = nullptr;
    const double expected = std::strtod(text.c_str(), &end);
    if (*end != '\0' || end == text.c_str()) {
      EXPECT_FALSE(parse_number(text, value)) << text;
    } else {
      ASSERT_TRUE(parse_number(text, value)) << text;
      EXPECT_EQ(value, expected) << text;
    }
  }
}

TEST(ParseNumber, ReturnsTheEndOfTheNumber) {
  const std::string text = "12.5:7";
  double value = 0;
  EXPECT_EQ(parse_number(text.data(), text.data() + text.size(), value), text.data() + 4);
  EXPECT_EQ(value, 12.5);
  EXPECT_EQ(parse_number(text.data(), text.data() + 2, value), text.data() + 2);
  EXPECT_EQ(value, 12);
}

TEST(ParseNumber, RejectsOtherTexts) {
  double value = 0;
  for (const char* text :
       {"", "-", "+", ".", "+-1", "-+1", "--1", "e5", "1e", "1,5", "0x10", "1 ", " 1", "one", "1.2.3"})
    EXPECT_FALSE(parse_number(text, value)) << text;
  for (const char* text : {"1.", ".5", "+3", "-0", "1e5", "1E-5", "+.5e+1"})
    EXPECT_TRUE(parse_number(text, value)) << text;
}

TEST(ParseNumber, OverflowsToInfinityAndUnderflowsToZero) {
  double value = 1;
  ASSERT_TRUE(parse_number("1e-999", value));
  EXPECT_EQ(value, 0);
  ASSERT_TRUE(parse_number("-1e999", value));
  EXPECT_EQ(value, -INFINITY);
  ASSERT_TRUE(parse_number("inf", value));
  EXPECT_EQ(value, INFINITY);
  ASSERT_TRUE(parse_number("nan", value));
  EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace dyad
