#include "serialization/checksum.h"

#include <fmt/format.h>
#include <zlib.h>

namespace dyad {
namespace {

constexpr std::string_view placeholder = checksum_placeholder;

/// Position of the first digit of the checksum; npos if the header has none. Quotes in JSON strings are escaped, so the
/// search cannot match inside a string.
std::size_t find_digits(std::string_view bytes) {
  const std::string_view header = Safetensors::header_of(bytes);
  const std::string entry = fmt::format("\"{}\":\"", checksum_key);
  const std::size_t found = header.find(entry);
  if (found == std::string_view::npos || header.size() - found < entry.size() + placeholder.size())
    return std::string_view::npos;
  return static_cast<std::size_t>(header.data() - bytes.data()) + found + entry.size();
}

uLong update_crc(uLong sum, std::string_view bytes) {
  if (bytes.empty()) return sum;  // crc32_z() restarts if the pointer is null
  return crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

/// CRC-32 of `bytes` with the eight digits at `digits` replaced by zeros.
std::string compute_checksum(std::string_view bytes, std::size_t digits) {
  uLong sum = update_crc(crc32_z(0, nullptr, 0), bytes.substr(0, digits));
  sum = update_crc(sum, placeholder);
  sum = update_crc(sum, bytes.substr(digits + placeholder.size()));
  return fmt::format("{:08x}", sum);
}

}  // namespace

void set_checksum(Safetensors& file) {
  file.metadata[checksum_key] = checksum_placeholder;
  uLong sum = crc32_z(0, nullptr, 0);
  file.write([&](std::string_view part) { sum = update_crc(sum, part); });
  file.metadata[checksum_key] = fmt::format("{:08x}", sum);
}

bool write_checksum(std::string& bytes) {
  const std::size_t digits = find_digits(bytes);
  if (digits == std::string::npos) return false;
  bytes.replace(digits, placeholder.size(), compute_checksum(bytes, digits));
  return true;
}

bool has_valid_checksum(std::string_view bytes) {
  const std::size_t digits = find_digits(bytes);
  return digits != std::string_view::npos &&
         bytes.substr(digits, placeholder.size()) == compute_checksum(bytes, digits);
}

}  // namespace dyad
