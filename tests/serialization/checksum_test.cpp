#include "serialization/checksum.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

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
  file.features.set_columns({column});
  file.model = test::random_model<double>(1, 1, 1);
  file.state = {{"s", {1.0 / 3}}};
  return file.to_bytes();
}

TEST(Checksum, SingleBitFlipsAreRejected) {
  std::string bytes = small_model();
  ASSERT_NO_THROW((void)ModelFile::from_bytes(bytes, "m"));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto flip = static_cast<char>(1 << bit % 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    EXPECT_THROW((void)ModelFile::from_bytes(bytes, "m"), DataError) << "bit " << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }
}

TEST(Checksum, EqualsCrc32OfFileWithZeroDigits) {
  const std::string bytes = small_model();
  EXPECT_TRUE(has_valid_checksum(bytes));
  std::string zeroed = bytes;
  const std::size_t digits = zeroed.find("\"checksum\":\"") + 12;
  zeroed.replace(digits, 8, checksum_placeholder);
  EXPECT_FALSE(has_valid_checksum(zeroed));
  // CRC-32 by its definition, one bit at a time.
  std::uint32_t sum = 0xFFFFFFFF;
  for (const char byte : zeroed) {
    sum ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320 : 0);
  }
  char expected[9];
  std::snprintf(expected, sizeof expected, "%08x", ~sum);
  EXPECT_EQ(bytes.substr(digits, 8), expected);
  EXPECT_EQ(ModelFile::from_bytes(bytes, "m").checksum, expected);
  EXPECT_TRUE(write_checksum(zeroed));
  EXPECT_EQ(zeroed, bytes);
}

TEST(Checksum, IsRequiredFromVersion2) {
  Safetensors file_content = Safetensors::from_bytes(small_model(), "m");
  file_content.metadata.erase(checksum_key);
  EXPECT_THROW((void)ModelFile::from_bytes(file_content.to_bytes(), "m"), DataError);
  file_content.metadata["format_version"] = "1";
  const ModelFile file = ModelFile::from_bytes(file_content.to_bytes(), "m");
  EXPECT_TRUE(file.checksum.empty());
  EXPECT_FALSE(file.warning.empty());
  EXPECT_TRUE(ModelFile::from_bytes(file.to_bytes(), "m").warning.empty());
}

TEST(Checksum, IsMissingInBytesWithoutHeader) {
  std::string bytes = "short";
  EXPECT_FALSE(has_valid_checksum(bytes));
  EXPECT_FALSE(write_checksum(bytes));
  EXPECT_EQ(bytes, "short");
}

}  // namespace
}  // namespace dyad
