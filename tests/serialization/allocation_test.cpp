// A program of its own, because it counts what is allocated.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include <dyad/data_error.h>

#include "base/random.h"
#include "serialization/model_file.h"

namespace {

std::atomic<std::size_t> allocated = 0;
std::atomic<std::size_t> most_allocated = 0;

}  // namespace

// Not inlined: what malloc gave would seem to go back by the wrong door.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  const std::size_t now = allocated += malloc_usable_size(block);
  std::size_t most = most_allocated;
  while (now > most && !most_allocated.compare_exchange_weak(most, now)) {
  }
  return block;
}

[[gnu::noinline]] void operator delete(void* block) noexcept {
  if (block != nullptr) allocated -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

namespace dyad {
namespace {

/// The most that reading needs at a time, whether it ends well or not.
std::size_t bytes_to_read(const std::string& bytes) {
  const std::size_t before = allocated;
  most_allocated = before;
  try {
    (void)ModelFile::from_bytes(bytes, "model");
  } catch (const DataError&) {
  }
  return most_allocated - before;
}

class Allocation : public testing::TestWithParam<std::string> {
 protected:
  const std::string bytes = [] {
    std::ifstream file(std::string(DYAD_MODEL_INPUTS) + "/" + GetParam(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  const std::size_t allowed = 12 * bytes.size() + 100'000;
};

TEST_P(Allocation, IsAMultipleOfTheFile) {
  ASSERT_GT(bytes.size(), 100U);
  EXPECT_LT(bytes_to_read(bytes), allowed);
}

/// Numbers in the header that promise more than there is.
TEST_P(Allocation, DoesNotBelieveLargeNumbers) {
  const std::size_t end = bytes.find("}}") == std::string::npos ? bytes.size() : bytes.rfind("}}");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 8; i < std::min<std::size_t>(end, 4000); ++i) {
    if (!is_digit(bytes[i]) || is_digit(bytes[i - 1])) continue;
    std::string changed = bytes;
    std::size_t stop = i;
    while (is_digit(changed[stop])) ++stop;
    changed.replace(i, stop - i, "999999999999999999");
    std::uint64_t length = 0;
    std::memcpy(&length, changed.data(), sizeof length);
    length += changed.size() - bytes.size();
    std::memcpy(changed.data(), &length, sizeof length);
    EXPECT_LT(bytes_to_read(changed), allowed) << "at " << i;
  }
}

/// A header of many small things, each of which takes more as a value than as text.
TEST(AllocationOfHeaders, IsAMultipleOfTheFile) {
  const auto with_length = [](const std::string& header) {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + header;
  };
  const auto repeated = [](const std::string& part) {
    std::string all;
    for (int i = 0; i < 300'000; ++i) all += part;
    return all;
  };
  const auto numbered = [](const std::string& before, const std::string& behind) {
    std::string all;
    for (int i = 0; i < 100'000; ++i) all += (i > 0 ? "," : "") + before + std::to_string(i) + behind;
    return all;
  };
  for (const std::string& header :
       {"{\"a\":[" + repeated("{},") + "{}]}", "{\"a\":[" + repeated("[],") + "[]]}",
        "{\"a\":[" + repeated("0,") + "0]}", "{" + numbered("\"", "\":{}") + "}",
        "{\"__metadata__\":{" + numbered("\"", "\":\"\"") + "}}",
        "{\"__metadata__\":{\"format\":\"dyad\",\"format_version\":\"1\",\"features\":\"{\\\"columns\\\":[" +
            repeated("{},") + "{}]}\"}}"}) {
    const std::string bytes = with_length(header);
    EXPECT_LT(bytes_to_read(bytes), 24 * bytes.size() + 200'000) << header.substr(0, 40);
  }
}

TEST_P(Allocation, DoesNotBelieveDamagedBytes) {
  Random random(1, 0);
  for (int trial = 0; trial < 300; ++trial) {
    std::string changed = bytes;
    for (int i = 0; i < 4; ++i)
      changed[static_cast<std::size_t>(random.uniform() *
                                       static_cast<double>(std::min<std::size_t>(changed.size(), 5000)))] =
          static_cast<char>(static_cast<int>(random.uniform() * 256));
    EXPECT_LT(bytes_to_read(changed), allowed);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Allocation,
                         testing::Values("ratings", "classes", "moment", "bilinear", "hashed", "phase"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace dyad
