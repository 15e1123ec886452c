#include "encoding/dictionary.h"

#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

TEST(Dictionary, AgreesWithStdMap) {
  Random random(1, 0);
  Dictionary dictionary;
  std::map<std::string, Index> expected;
  std::vector<std::uint64_t> stored;
  for (int i = 0; i < 50000; ++i) {
    const std::string text(static_cast<std::size_t>(random.uniform() * 4),
                           static_cast<char>('a' + static_cast<int>(random.uniform() * 26)));
    const std::string word = text + std::to_string(static_cast<int>(random.uniform() * 3000));
    const auto found = expected.find(word);
    ASSERT_EQ(dictionary.find(word), found == expected.end() ? Dictionary::absent : found->second);
    if (found != expected.end()) continue;
    const auto number = static_cast<Index>(expected.size());
    expected[word] = number;
    stored.push_back(dictionary.add(word, number));
  }
  const Dictionary::Reader reader = dictionary.reader();
  for (const auto& [word, number] : expected) {
    EXPECT_EQ(dictionary.find(word), number);
    EXPECT_EQ(reader.find(word), number);
    EXPECT_EQ(dictionary.text(stored[static_cast<std::size_t>(number)]), word);
  }
}

/// A reader finds all words of the time of its creation, and no wrong number for words that are added meanwhile.
TEST(Dictionary, AllowsReadersWhileWordsAreAdded) {
  constexpr Index words = 20000;
  const auto word = [](Index i) { return (i % 2 == 0 ? "w" : "a longer word ") + std::to_string(i); };
  Dictionary dictionary;
  std::atomic<Index> added = 0;
  std::atomic<int> errors = 0;
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&] {
      while (added < words) {
        const Index known = added;
        const Dictionary::Reader reader = dictionary.reader();
        for (Index i = known > 100 ? known - 100 : 0; i < known + 10; ++i) {
          const Index found = reader.find(word(i));
          if (found != i && (found != Dictionary::absent || i < known)) ++errors;
        }
      }
    });
  for (Index i = 0; i < words; ++i) {
    dictionary.add(word(i), i);
    ++added;
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(errors, 0);
}

TEST(TextStore, KeepsTextsOfAllLengths) {
  TextStore store;
  std::vector<std::pair<std::uint64_t, std::string>> texts;
  for (const int number : {0, 1, 127, 128, 255, 256, 16383, 16384, 1'000'000, 0, 3, 300, 70000}) {
    const auto length = static_cast<std::size_t>(number);
    const std::string text(length, static_cast<char>('a' + texts.size()));
    texts.emplace_back(store.add(text), text);
  }
  for (const auto& [position, text] : texts) EXPECT_EQ(store.at(position), text);
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
