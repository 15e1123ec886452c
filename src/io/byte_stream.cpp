#include "io/byte_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <dyad/error.h>

#include "base/file_descriptor.h"

namespace dyad {
namespace {

void throw_if_stopped(const std::function<bool()>& stop) {
  if (stop && stop()) throw ReadingStopped();
}

/// Unbuffered reads from a file or from standard input.
class InputFile {
 public:
  explicit InputFile(const Input& input) : path_(input.path), stop_(input.stop) {
    // O_NONBLOCK: opening a pipe that has no writer yet returns at once. read_some() waits in wait(), which polls
    // `stop`.
    if (path_ != "-") file_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (path_ != "-" && !file_.is_open())
      throw std::runtime_error(path_ + " cannot be opened: " + std::strerror(errno));
    struct stat status {};
    if (fstat(number(), &status) == 0 && S_ISDIR(status.st_mode))
      throw std::runtime_error(name() + " is a folder, expected a file");
    may_block_ = !S_ISREG(status.st_mode);
  }

  /// As ByteStream::read_some().
  std::size_t read_some(char* buffer, std::size_t size) {
    while (true) {
      if (may_block_) wait();
      const ssize_t byte_count = ::read(number(), buffer, size);
      if (byte_count >= 0) return static_cast<std::size_t>(byte_count);
      if (errno != EINTR && errno != EAGAIN)
        throw std::runtime_error(name() + " cannot be read: " + std::strerror(errno));
    }
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  /// Name of the input in messages.
  [[nodiscard]] std::string name() const { return path_ == "-" ? "standard input" : path_; }
  /// File descriptor of the input.
  [[nodiscard]] int number() const { return path_ == "-" ? STDIN_FILENO : file_.number(); }

  /// Waits until bytes or the end of the input can be read. Throws ReadingStopped if `stop` returns true.
  void wait() const {
    // Upper bound on the delay between a stop request and its effect, half of the 100 ms that users perceive as
    // immediate (Nielsen, Usability Engineering, 1993, section 5.5).
    constexpr int stop_poll_ms = 50;
    pollfd waiting{number(), POLLIN, 0};
    do throw_if_stopped(stop_);
    while (poll(&waiting, 1, stop_poll_ms) <= 0);
  }

  std::string path_;
  std::function<bool()> stop_;
  FileDescriptor file_;     ///< no descriptor for standard input
  bool may_block_ = false;  ///< true for pipes, terminals and devices
};

/// Buffered bytes of the input before decompression.
class CompressedInput {
 public:
  explicit CompressedInput(const Input& input) : file_(input), buffer_(buffer_bytes) {
    // Length of the zstd magic number, the longest one that is detected.
    constexpr std::size_t max_magic_bytes = 4;
    while (end_ < max_magic_bytes) {
      const std::size_t byte_count = file_.read_some(buffer_.data() + end_, buffer_.size() - end_);
      if (byte_count == 0) break;
      end_ += byte_count;
    }
  }

  /// Replaces the buffer by the next bytes of the file. Returns false at its end.
  bool refill() {
    begin_ = 0;
    end_ = file_.read_some(buffer_.data(), buffer_.size());
    return end_ > 0;
  }

  [[nodiscard]] const char* data() const { return buffer_.data() + begin_; }
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }
  void skip(std::size_t count) { begin_ += count; }
  [[nodiscard]] bool starts_with(std::string_view magic) const {
    return std::string_view(data(), size()).starts_with(magic);
  }
  [[noreturn]] void fail(const std::string& what) const { throw DataError(file_.path(), 0, 0, what); }

 private:
  /// The maximum size of a zstd block (RFC 8878, section 3.1.1.2.4: 128 KiB).
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 17;

  InputFile file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace

/// Interface of the decompressors. Owns the input.
class ByteStream::Decompressor {
 public:
  explicit Decompressor(CompressedInput compressed) : compressed_(std::move(compressed)) {}
  virtual ~Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// As ByteStream::read_some().
  virtual std::size_t read_some(std::span<char> buffer) = 0;

 protected:
  CompressedInput compressed_;
};

namespace {

/// Input without compression.
class PassThrough : public ByteStream::Decompressor {
 public:
  using Decompressor::Decompressor;
  std::size_t read_some(std::span<char> buffer) override {
    if (compressed_.size() == 0 && !compressed_.refill()) return 0;
    const std::size_t count = std::min(buffer.size(), compressed_.size());
    std::memcpy(buffer.data(), compressed_.data(), count);
    compressed_.skip(count);
    return count;
  }
};

class GzipDecompressor : public ByteStream::Decompressor {
 public:
  static constexpr std::string_view magic = "\x1f\x8b";

  explicit GzipDecompressor(CompressedInput compressed) : Decompressor(std::move(compressed)) {
    // inflateInit2: 16 added to the window size selects the gzip format.
    constexpr int gzip_window_bits = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, gzip_window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~GzipDecompressor() override { inflateEnd(&stream_); }

  std::size_t read_some(std::span<char> buffer) override {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(buffer.size());
    while (stream_.avail_out == buffer.size()) {
      if (compressed_.size() == 0 && !compressed_.refill()) {
        if (is_inside_member_) compressed_.fail("the gzip data is incomplete: the file is cut off");
        return 0;
      }
      // Only the first byte is compared, because the buffer may end after it. inflate() checks the second byte.
      if (!is_inside_member_ && !compressed_.starts_with(magic.substr(0, 1)))
        compressed_.fail("bytes that are not gzip follow the gzip data; remove them or decompress the file first");
      is_inside_member_ = true;
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed_.data()));
      stream_.avail_in = static_cast<uInt>(compressed_.size());
      const int outcome = inflate(&stream_, Z_NO_FLUSH);
      compressed_.skip(compressed_.size() - stream_.avail_in);
      if (outcome == Z_STREAM_END) {  // a gzip file may consist of several members (RFC 1952, section 2.2)
        is_inside_member_ = false;
        inflateReset(&stream_);
      } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
        compressed_.fail("the gzip data is damaged; compress the original file again");
      }
    }
    return buffer.size() - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool is_inside_member_ = false;
};

class ZstdDecompressor : public ByteStream::Decompressor {
 public:
  /// True if the input starts with a zstd frame (magic number 0xFD2FB528, little-endian) or with a skippable frame (RFC
  /// 8878, section 3.1.2: 0x184D2A50 to 0x184D2A5F).
  static bool is_zstd(const CompressedInput& compressed) {
    if (compressed.starts_with("\x28\xb5\x2f\xfd")) return true;
    const std::string_view bytes(compressed.data(), compressed.size());
    return bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) & 0xf0) == 0x50 &&
           bytes.substr(1, 3) == "\x2a\x4d\x18";
  }

  explicit ZstdDecompressor(CompressedInput compressed)
      : Decompressor(std::move(compressed)), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  std::size_t read_some(std::span<char> buffer) override {
    ZSTD_outBuffer output{buffer.data(), buffer.size(), 0};
    while (output.pos == 0) {
      if (compressed_.size() == 0 && !compressed_.refill()) {
        if (is_inside_frame_) compressed_.fail("the zstd data is incomplete: the file is cut off");
        return 0;
      }
      ZSTD_inBuffer input{compressed_.data(), compressed_.size(), 0};
      const std::size_t outcome = ZSTD_decompressStream(stream_.get(), &output, &input);
      compressed_.skip(input.pos);
      if (ZSTD_isError(outcome) != 0) compressed_.fail("the zstd data is damaged; compress the original file again");
      is_inside_frame_ = outcome != 0;
    }
    return output.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  bool is_inside_frame_ = false;
};

std::unique_ptr<ByteStream::Decompressor> open_decompressor(const Input& input) {
  CompressedInput compressed(input);
  if (compressed.starts_with(GzipDecompressor::magic)) return std::make_unique<GzipDecompressor>(std::move(compressed));
  if (ZstdDecompressor::is_zstd(compressed)) return std::make_unique<ZstdDecompressor>(std::move(compressed));
  return std::make_unique<PassThrough>(std::move(compressed));
}

}  // namespace

ByteStream::ByteStream(const Input& input)
    : path_(input.path), stop_(input.stop), decompressor_(open_decompressor(input)) {}
ByteStream::~ByteStream() = default;
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;

std::size_t ByteStream::read_some(std::span<char> buffer) {
  throw_if_stopped(stop_);
  return decompressor_->read_some(buffer);
}

}  // namespace dyad
