#include "io/byte_stream.h"

#include <stdexcept>

#include <dyad/error.h>

#include "base/random.h"
#include "io/bytes_support.h"

namespace dyad {
namespace {

class ByteStreamTest : public test::TemporaryFolderTest {
 protected:
  static std::string read_all(const std::string& path, std::size_t buffer_size = 1000) {
    ByteStream stream(path);
    std::string bytes;
    std::string buffer(buffer_size, '\0');
    while (const std::size_t got = stream.read_some(buffer)) bytes.append(buffer.data(), got);
    return bytes;
  }

  static std::string error_message(const std::string& path) {
    try {
      (void)read_all(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }

  static std::string random_bytes() {
    Random random(1, 0);
    std::string bytes;
    for (int i = 0; i < 400'000; ++i) bytes += static_cast<char>('a' + random.bits() % 20);
    return bytes;
  }
};

TEST_F(ByteStreamTest, DecompressesToTheOriginalBytes) {
  for (const std::string& bytes : {std::string(), std::string("x"), std::string("ab\n"), random_bytes()}) {
    EXPECT_EQ(read_all(write("plain", bytes)), bytes);
    EXPECT_EQ(read_all(write("packed.gz", test::gzipped(bytes))), bytes);
    EXPECT_EQ(read_all(write("packed.zst", test::zstd_packed(bytes))), bytes);
    EXPECT_EQ(read_all(write("wrong name.csv", test::gzipped(bytes)), 7), bytes);
  }
}

TEST_F(ByteStreamTest, ConcatenatedMembersAreOneStream) {
  EXPECT_EQ(read_all(write("two.gz", test::gzipped("one ") + test::gzipped("two"))), "one two");
  EXPECT_EQ(read_all(write("two.zst", test::zstd_packed("one ") + test::zstd_packed("two"))), "one two");
}

TEST_F(ByteStreamTest, SkipsSkippableZstdFrames) {
  using namespace std::string_literals;
  const std::string frame = "\x5a\x2a\x4d\x18\x03\0\0\0"s + "abc";
  EXPECT_EQ(read_all(write("first.zst", frame + test::zstd_packed("rows"))), "rows");
  EXPECT_EQ(read_all(write("each.zst", frame + test::zstd_packed("one ") + frame + test::zstd_packed("two") + frame)),
            "one two");
  EXPECT_EQ(read_all(write("only.zst", frame)), "");
  EXPECT_NE(error_message(write("cut.zst", frame.substr(0, 9))).find("cut off"), std::string::npos);
}

TEST_F(ByteStreamTest, StopRequestEndsDecompression) {
  bool is_stopped = false;
  ByteStream stream(
      Input(write("zeros.zst", test::zstd_packed(std::string(1'000'000, '\0'))), [&] { return is_stopped; }));
  std::string buffer(1000, '\0');
  EXPECT_EQ(stream.read_some(buffer), buffer.size());
  is_stopped = true;
  EXPECT_THROW((void)stream.read_some(buffer), ReadingStopped);
}

TEST_F(ByteStreamTest, ThrowsForTruncatedOrDamagedData) {
  const std::string bytes = random_bytes();
  for (const auto& [name, packed] : {std::pair{"gzip", test::gzipped(bytes)}, {"zstd", test::zstd_packed(bytes)}}) {
    for (const std::size_t length : {packed.size() - 1, packed.size() / 2, std::size_t{12}}) {
      const std::string message = error_message(write("cut", packed.substr(0, length)));
      EXPECT_NE(message.find("cut off"), std::string::npos) << name << " " << length << ": " << message;
    }
    std::string damaged = packed;
    for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 200; ++i)
      damaged[i] = static_cast<char>(~damaged[i]);
    EXPECT_NE(error_message(write("damaged", damaged)).find(name), std::string::npos);
  }
  EXPECT_NE(error_message(write("more", test::gzipped("one") + "two")).find("not gzip"), std::string::npos);
}

TEST_F(ByteStreamTest, ThrowsForFilesThatCannotBeOpened) {
  EXPECT_THROW(ByteStream(folder() + "/missing"), std::runtime_error);
  EXPECT_THROW(ByteStream{folder()}, std::runtime_error);
}

}  // namespace
}  // namespace dyad
