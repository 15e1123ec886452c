#pragma once

#include <string>
#include <string_view>

namespace dyad {

/// Metadata entry of a model file that holds the CRC-32 (ISO 3309, as in zlib) of all bytes of the file, as eight
/// hexadecimal digits, computed with these digits set to zero. CRC-32 detects every error burst of up to 32 bits.
inline constexpr const char* checksum_key = "checksum";
inline constexpr const char* checksum_placeholder = "00000000";

/// Writes the checksum of a complete safetensors file into its header. False if the header has no such entry.
bool write_checksum(std::string& bytes);

/// Whether the header contains a checksum and it is that of `bytes`.
bool has_valid_checksum(std::string_view bytes);

}  // namespace dyad
