#include "encoding/dictionary.h"

#include <map>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

TEST(Dictionary, AgreesWithStdMap) {
  Random random(1, 0);
  Dictionary dictionary;
  std::map<std::string, Index> expected;
  std::vector<const std::string*> stored;
  for (int i = 0; i < 50000; ++i) {
    const std::string text(static_cast<std::size_t>(random.uniform() * 4),
                           static_cast<char>('a' + static_cast<int>(random.uniform() * 26)));
    const std::string word = text + std::to_string(static_cast<int>(random.uniform() * 3000));
    const auto found = expected.find(word);
    ASSERT_EQ(dictionary.find(word), found == expected.end() ? Dictionary::absent : found->second);
    if (found != expected.end()) continue;
    const auto number = static_cast<Index>(expected.size());
    expected[word] = number;
    stored.push_back(&dictionary.add(word, number));
  }
  const Dictionary moved = std::move(dictionary);
  for (const auto& [word, number] : expected) {
    EXPECT_EQ(moved.find(word), number);
    EXPECT_EQ(*stored[static_cast<std::size_t>(number)], word);
  }
}

/// Chi-squared test for short and long texts that differ in four digits only. The statistic has a mean of about
/// `buckets` and a standard deviation of sqrt(2 buckets).
TEST(KeyedHash, DistributesSimilarTextsUniformly) {
  for (const std::string shape :
       {"user0000", "a name that is longer than eight bytes 0000", "0000 in front of it all"}) {
    constexpr std::size_t buckets = 1024;
    std::vector<int> counts(buckets);
    const std::size_t at = shape.find("0000");
    for (int i = 0; i < 10000; ++i) {
      std::string text = shape;
      const std::string digits = std::to_string(10000 + i).substr(1);
      text.replace(at, digits.size(), digits);
      ++counts[KeyedHash::hash(text) % buckets];
    }
    double squares = 0;
    const double mean = 10000.0 / buckets;
    for (const int count : counts) squares += (count - mean) * (count - mean) / mean;
    EXPECT_NEAR(squares, buckets, 10 * std::sqrt(2.0 * buckets)) << shape;
  }
}

TEST(Dictionary, AcceptsEmptyTextsAndZeroBytes) {
  Dictionary dictionary;
  EXPECT_EQ(dictionary.find(""), Dictionary::absent);
  dictionary.add("", 7);
  dictionary.add(std::string_view("a\0b", 3), 8);
  EXPECT_EQ(dictionary.find(""), 7);
  EXPECT_EQ(dictionary.find(std::string_view("a\0b", 3)), 8);
  EXPECT_EQ(dictionary.find("a"), Dictionary::absent);
}

}  // namespace
}  // namespace dyad
