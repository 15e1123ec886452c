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

#include <dyad/data_error.h>

#include "base/file_descriptor.h"

namespace dyad {
namespace {

void throw_if_stopped(const std::function<bool()>& stop) {
  if (stop && stop()) throw ReadingStopped();
}

/// An open file descriptor, read without a buffer of its own.
class Descriptor {
 public:
  explicit Descriptor(const Input& input) : path_(input.path), stop_(input.stop) {
    // Opening a pipe without a writer must not block: read_some waits, and can be stopped.
    if (path_ != "-") file_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (path_ != "-" && !file_.is_open())
      throw std::runtime_error(path_ + " cannot be opened: " + std::strerror(errno));
    struct stat status {};
    if (fstat(number(), &status) == 0 && S_ISDIR(status.st_mode))
      throw std::runtime_error(path_ + " is a folder, expected a file");
    may_wait_ = !S_ISREG(status.st_mode);
  }

  /// What is there already, without waiting for a full buffer; 0 only at the end.
  std::size_t read_some(char* buffer, std::size_t size) {
    while (true) {
      if (may_wait_) wait();
      const ssize_t got = ::read(number(), buffer, size);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR && errno != EAGAIN)
        throw std::runtime_error(path_ + " cannot be read: " + std::strerror(errno));
    }
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] int number() const { return path_ == "-" ? STDIN_FILENO : file_.number(); }

  void wait() const {
    constexpr int stop_poll_ms = 50;
    pollfd waiting{number(), POLLIN, 0};
    do throw_if_stopped(stop_);
    while (poll(&waiting, 1, stop_poll_ms) <= 0);
  }

  std::string path_;
  std::function<bool()> stop_;
  FileDescriptor file_;  ///< none for standard input
  bool may_wait_ = false;
};

/// The bytes of the file as they are, a buffer at a time.
class Packed {
 public:
  explicit Packed(const Input& input) : file_(input), buffer_(std::size_t{1} << 17) {
    constexpr std::size_t longest_magic = 4;
    while (end_ < longest_magic) {
      const std::size_t got = file_.read_some(buffer_.data() + end_, buffer_.size() - end_);
      if (got == 0) break;
      end_ += got;
    }
  }

  /// False at the end of the file.
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
  Descriptor file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace

class ByteStream::Unpacker {
 public:
  explicit Unpacker(Packed packed) : packed_(std::move(packed)) {}
  virtual ~Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  /// Some bytes, and 0 only at the end.
  virtual std::size_t read_some(std::span<char> buffer) = 0;

 protected:
  Packed packed_;
};

namespace {

class Plain : public ByteStream::Unpacker {
 public:
  using Unpacker::Unpacker;
  std::size_t read_some(std::span<char> buffer) override {
    if (packed_.size() == 0 && !packed_.refill()) return 0;
    const std::size_t count = std::min(buffer.size(), packed_.size());
    std::memcpy(buffer.data(), packed_.data(), count);
    packed_.skip(count);
    return count;
  }
};

class Gzip : public ByteStream::Unpacker {
 public:
  static constexpr std::string_view magic = "\x1f\x8b";

  explicit Gzip(Packed packed) : Unpacker(std::move(packed)) {
    constexpr int gzip_header = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, gzip_header) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }

  std::size_t read_some(std::span<char> buffer) override {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream_.avail_out = static_cast<uInt>(buffer.size());
    while (stream_.avail_out == buffer.size()) {
      if (packed_.size() == 0 && !packed_.refill()) {
        if (inside_) packed_.fail("the gzip data ends in the middle: the file is cut off");
        return 0;
      }
      if (!inside_ && !packed_.starts_with(magic.substr(0, 1)))
        packed_.fail("something that is not gzip follows the gzip data");
      inside_ = true;
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data()));
      stream_.avail_in = static_cast<uInt>(packed_.size());
      const int outcome = inflate(&stream_, Z_NO_FLUSH);
      packed_.skip(packed_.size() - stream_.avail_in);
      if (outcome == Z_STREAM_END) {  // another member may follow
        inside_ = false;
        inflateReset(&stream_);
      } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
        packed_.fail("the gzip data is damaged");
      }
    }
    return buffer.size() - stream_.avail_out;
  }

 private:
  z_stream stream_{};
  bool inside_ = false;
};

class Zstd : public ByteStream::Unpacker {
 public:
  /// A zstd frame, or a skippable frame (RFC 8878, section 3.1.2: 0x184D2A50 to 0x184D2A5F, little-endian) before one.
  static bool detect(const Packed& packed) {
    if (packed.starts_with("\x28\xb5\x2f\xfd")) return true;
    const std::string_view bytes(packed.data(), packed.size());
    return bytes.size() >= 4 && (static_cast<unsigned char>(bytes[0]) & 0xf0) == 0x50 &&
           bytes.substr(1, 3) == "\x2a\x4d\x18";
  }

  explicit Zstd(Packed packed) : Unpacker(std::move(packed)), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  std::size_t read_some(std::span<char> buffer) override {
    ZSTD_outBuffer output{buffer.data(), buffer.size(), 0};
    while (output.pos == 0) {
      if (packed_.size() == 0 && !packed_.refill()) {
        if (inside_) packed_.fail("the zstd data ends in the middle: the file is cut off");
        return 0;
      }
      ZSTD_inBuffer input{packed_.data(), packed_.size(), 0};
      const std::size_t outcome = ZSTD_decompressStream(stream_.get(), &output, &input);
      packed_.skip(input.pos);
      if (ZSTD_isError(outcome) != 0) packed_.fail("the zstd data is damaged");
      inside_ = outcome != 0;
    }
    return output.pos;
  }

 private:
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  bool inside_ = false;
};

std::unique_ptr<ByteStream::Unpacker> unpacker_for(const Input& input) {
  Packed packed(input);
  if (packed.starts_with(Gzip::magic)) return std::make_unique<Gzip>(std::move(packed));
  if (Zstd::detect(packed)) return std::make_unique<Zstd>(std::move(packed));
  return std::make_unique<Plain>(std::move(packed));
}

}  // namespace

ByteStream::ByteStream(const Input& input) : path_(input.path), stop_(input.stop), unpacker_(unpacker_for(input)) {}
ByteStream::~ByteStream() = default;
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;

std::size_t ByteStream::read_some(std::span<char> buffer) {
  throw_if_stopped(stop_);
  return unpacker_->read_some(buffer);
}

}  // namespace dyad
