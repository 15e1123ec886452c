#include "serialization/checksum.h"

#include <fmt/format.h>
#include <zlib.h>

#include "serialization/safetensors.h"

namespace dyad {
namespace {

constexpr std::string_view placeholder = checksum_placeholder;

/// Position of the first digit; npos if the header has no checksum. Quotes inside JSON strings are escaped, so that the
/// searched text cannot be part of a value.
std::size_t find_digits(std::string_view bytes) {
  const std::string_view header = Safetensors::header_of(bytes);
  const std::string entry = fmt::format("\"{}\":\"", checksum_key);
  const std::size_t found = header.find(entry);
  if (found == std::string_view::npos || header.size() - found < entry.size() + placeholder.size())
    return std::string_view::npos;
  return static_cast<std::size_t>(header.data() - bytes.data()) + found + entry.size();
}

uLong update(uLong sum, std::string_view bytes) {
  return crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

std::string compute(std::string_view bytes, std::size_t digits) {
  uLong sum = update(crc32_z(0, nullptr, 0), bytes.substr(0, digits));
  sum = update(sum, placeholder);
  sum = update(sum, bytes.substr(digits + placeholder.size()));
  return fmt::format("{:08x}", sum);
}

}  // namespace

bool write_checksum(std::string& bytes) {
  const std::size_t digits = find_digits(bytes);
  if (digits == std::string::npos) return false;
  bytes.replace(digits, placeholder.size(), compute(bytes, digits));
  return true;
}

bool has_valid_checksum(std::string_view bytes) {
  const std::size_t digits = find_digits(bytes);
  return digits != std::string_view::npos && bytes.substr(digits, placeholder.size()) == compute(bytes, digits);
}

}  // namespace dyad
