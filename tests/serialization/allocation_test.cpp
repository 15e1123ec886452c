// Measures the memory that reading a model file allocates. A separate program, because it replaces operator new.
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

#include <dyad/error.h>

#include "base/random.h"
#include "serialization/model_file.h"

namespace {

std::atomic<std::size_t> allocated = 0;
std::atomic<std::size_t> peak_allocated = 0;

}  // namespace

// Not inlined, so that the compiler does not report memory of malloc that is passed to operator delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  const std::size_t now = allocated += malloc_usable_size(block);
  std::size_t peak = peak_allocated;
  while (now > peak && !peak_allocated.compare_exchange_weak(peak, now)) {
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

/// Peak of the allocated bytes while a model file is read, successfully or not.
std::size_t peak_bytes_to_read(const std::string& bytes) {
  const std::size_t before = allocated;
  peak_allocated = before;
  try {
    (void)ModelFile::from_bytes(bytes, "model");
  } catch (const DataError&) {
  }
  return peak_allocated - before;
}

class Allocation : public testing::TestWithParam<std::string> {
 protected:
  const std::string bytes = [] {
    std::ifstream file(std::string(DYAD_MODEL_INPUTS) + "/" + GetParam(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  const std::size_t max_bytes = 12 * bytes.size() + 100'000;
};

TEST_P(Allocation, IsBoundedByFileSize) {
  ASSERT_GT(bytes.size(), 100U);
  EXPECT_LT(peak_bytes_to_read(bytes), max_bytes);
}

/// The header states sizes that exceed the file.
TEST_P(Allocation, IsBoundedForLargeSizesInHeader) {
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
    EXPECT_LT(peak_bytes_to_read(changed), max_bytes) << "at " << i;
  }
}

/// The header has many small values, each of which needs more memory than text.
TEST(HeaderAllocation, IsBoundedByFileSize) {
  const auto with_length = [](const std::string& header) {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + header;
  };
  const auto repeated = [](const std::string& element) {
    std::string all;
    for (int i = 0; i < 300'000; ++i) all += element;
    return all;
  };
  const auto numbered = [](const std::string& prefix, const std::string& suffix) {
    std::string all;
    for (int i = 0; i < 100'000; ++i) all += (i > 0 ? "," : "") + prefix + std::to_string(i) + suffix;
    return all;
  };
  for (const std::string& header :
       {"{\"a\":[" + repeated("{},") + "{}]}", "{\"a\":[" + repeated("[],") + "[]]}",
        "{\"a\":[" + repeated("0,") + "0]}", "{" + numbered("\"", "\":{}") + "}",
        "{\"__metadata__\":{" + numbered("\"", "\":\"\"") + "}}",
        "{\"__metadata__\":{\"format\":\"dyad\",\"format_version\":\"1\",\"features\":\"{\\\"columns\\\":[" +
            repeated("{},") + "{}]}\"}}"}) {
    const std::string bytes = with_length(header);
    EXPECT_LT(peak_bytes_to_read(bytes), 24 * bytes.size() + 200'000) << header.substr(0, 40);
  }
}

TEST_P(Allocation, IsBoundedForDamagedBytes) {
  Random random(1, 0);
  for (int trial = 0; trial < 300; ++trial) {
    std::string changed = bytes;
    for (int i = 0; i < 4; ++i)
      changed[static_cast<std::size_t>(random.uniform() *
                                       static_cast<double>(std::min<std::size_t>(changed.size(), 5000)))] =
          static_cast<char>(static_cast<int>(random.uniform() * 256));
    EXPECT_LT(peak_bytes_to_read(changed), max_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Allocation,
                         testing::Values("ratings", "classes", "moment", "bilinear", "hashed", "phase"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace dyad
