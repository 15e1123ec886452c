#include "serialization/checksum.h"

#include <gtest/gtest.h>

#include <dyad/data_error.h>

#include "serialization/model_file.h"
#include "serialization/safetensors.h"
#include "support.h"

namespace dyad {
namespace {

std::string small_model() {
  ModelFile file;
  file.features.layout = Layout::matrix;
  Column column;
  column.name = "0";
  file.features.fix({column});
  file.model = test::random_model<double>(1, 1, 1);
  file.state = {{"s", {1.0 / 3}}};
  return file.to_bytes();
}

TEST(Checksum, EverySingleBitFlipIsRefused) {
  std::string bytes = small_model();
  ASSERT_NO_THROW((void)ModelFile::from_bytes(bytes, "m"));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto flip = static_cast<char>(1 << bit % 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    EXPECT_THROW((void)ModelFile::from_bytes(bytes, "m"), DataError) << "bit " << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }
}

TEST(Checksum, IsTheCrc32OfTheFileWithZeros) {
  const std::string bytes = small_model();
  EXPECT_TRUE(has_valid_checksum(bytes));
  std::string again = bytes;
  const std::size_t digits = again.find("\"checksum\":\"") + 12;
  again.replace(digits, 8, checksum_placeholder);
  EXPECT_FALSE(has_valid_checksum(again));
  // CRC-32 by its definition, bit by bit.
  std::uint32_t sum = 0xFFFFFFFF;
  for (const char byte : again) {
    sum ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320 : 0);
  }
  char expected[9];
  std::snprintf(expected, sizeof expected, "%08x", ~sum);
  EXPECT_EQ(bytes.substr(digits, 8), expected);
  EXPECT_EQ(ModelFile::from_bytes(bytes, "m").checksum, expected);
  EXPECT_TRUE(write_checksum(again));
  EXPECT_EQ(again, bytes);
}

TEST(Checksum, IsRequiredFromVersion2On) {
  Safetensors parts = Safetensors::from_bytes(small_model(), "m");
  parts.metadata.erase(checksum_key);
  EXPECT_THROW((void)ModelFile::from_bytes(parts.to_bytes(), "m"), DataError);
  parts.metadata["format_version"] = "1";
  const ModelFile file = ModelFile::from_bytes(parts.to_bytes(), "m");
  EXPECT_TRUE(file.checksum.empty());
  EXPECT_FALSE(file.warning.empty());
  EXPECT_TRUE(ModelFile::from_bytes(file.to_bytes(), "m").warning.empty());
}

TEST(Checksum, OfBytesThatAreNoFileIsMissing) {
  std::string bytes = "short";
  EXPECT_FALSE(has_valid_checksum(bytes));
  EXPECT_FALSE(write_checksum(bytes));
  EXPECT_EQ(bytes, "short");
}

}  // namespace
}  // namespace dyad
