#include "io/byte_stream.h"

#include <stdexcept>

#include <dyad/data_error.h>

#include "base/random.h"
#include "io/bytes_support.h"

namespace dyad {
namespace {

class ByteStreams : public test::InFolder {
 protected:
  static std::string all_of(const std::string& path, std::size_t buffer_size = 1000) {
    ByteStream stream(path);
    std::string bytes;
    std::string buffer(buffer_size, '\0');
    while (const std::size_t got = stream.read_some(buffer)) bytes.append(buffer.data(), got);
    return bytes;
  }

  static std::string message_of(const std::string& path) {
    try {
      (void)all_of(path);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }

  static std::string some_bytes() {
    Random random(1, 0);
    std::string bytes;
    for (int i = 0; i < 400'000; ++i) bytes += static_cast<char>('a' + random.bits() % 20);
    return bytes;
  }
};

TEST_F(ByteStreams, GiveBackWhatWasPacked) {
  for (const std::string& bytes : {std::string(), std::string("x"), std::string("ab\n"), some_bytes()}) {
    EXPECT_EQ(all_of(write("plain", bytes)), bytes);
    EXPECT_EQ(all_of(write("packed.gz", test::gzipped(bytes))), bytes);
    EXPECT_EQ(all_of(write("packed.zst", test::zstd_packed(bytes))), bytes);
    EXPECT_EQ(all_of(write("wrong name.csv", test::gzipped(bytes)), 7), bytes);
  }
}

TEST_F(ByteStreams, PartsOneBehindTheOtherAreOneStream) {
  EXPECT_EQ(all_of(write("two.gz", test::gzipped("one ") + test::gzipped("two"))), "one two");
  EXPECT_EQ(all_of(write("two.zst", test::zstd_packed("one ") + test::zstd_packed("two"))), "one two");
}

TEST_F(ByteStreams, SkippableFramesOfZstdAreSkipped) {
  using namespace std::string_literals;
  const std::string frame = "\x5a\x2a\x4d\x18\x03\0\0\0"s + "abc";
  EXPECT_EQ(all_of(write("first.zst", frame + test::zstd_packed("rows"))), "rows");
  EXPECT_EQ(all_of(write("each.zst", frame + test::zstd_packed("one ") + frame + test::zstd_packed("two") + frame)),
            "one two");
  EXPECT_EQ(all_of(write("only.zst", frame)), "");
  EXPECT_NE(message_of(write("cut.zst", frame.substr(0, 9))).find("cut off"), std::string::npos);
}

TEST_F(ByteStreams, CanBeStoppedWhileAFileIsDecompressed) {
  bool is_stopped = false;
  ByteStream stream(
      Input(write("zeros.zst", test::zstd_packed(std::string(1'000'000, '\0'))), [&] { return is_stopped; }));
  std::string buffer(1000, '\0');
  EXPECT_EQ(stream.read_some(buffer), buffer.size());
  is_stopped = true;
  EXPECT_THROW((void)stream.read_some(buffer), ReadingStopped);
}

TEST_F(ByteStreams, SayWhatIsCutOffOrDamaged) {
  const std::string bytes = some_bytes();
  for (const auto& [name, packed] : {std::pair{"gzip", test::gzipped(bytes)}, {"zstd", test::zstd_packed(bytes)}}) {
    for (const std::size_t kept : {packed.size() - 1, packed.size() / 2, std::size_t{12}}) {
      const std::string message = message_of(write("cut", packed.substr(0, kept)));
      EXPECT_NE(message.find("cut off"), std::string::npos) << name << " " << kept << ": " << message;
    }
    std::string damaged = packed;
    for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 200; ++i)
      damaged[i] = static_cast<char>(~damaged[i]);
    EXPECT_NE(message_of(write("damaged", damaged)).find(name), std::string::npos);
  }
  EXPECT_NE(message_of(write("more", test::gzipped("one") + "two")).find("not gzip"), std::string::npos);
}

TEST_F(ByteStreams, SayWhatCannotBeOpened) {
  EXPECT_THROW(ByteStream(folder() + "/missing"), std::runtime_error);
  EXPECT_THROW(ByteStream{folder()}, std::runtime_error);
}

}  // namespace
}  // namespace dyad
