#pragma once

#include <string>
#include <string_view>

#include "serialization/safetensors.h"

namespace dyad {

/// Metadata entry with the CRC-32 (ISO 3309, as in zlib) of the whole file in eight hexadecimal digits. It is computed
/// with these digits set to zero. CRC-32 detects every error burst of up to 32 bits.
inline constexpr const char* checksum_key = "checksum";
inline constexpr const char* checksum_placeholder = "00000000";

/// Sets the checksum of a file that is about to be written.
void set_checksum(Safetensors& file);

/// Writes the checksum of a complete safetensors file into its header. Returns false if the header has no such entry.
bool write_checksum(std::string& bytes);

/// Whether the header has a checksum that matches `bytes`.
bool has_valid_checksum(std::string_view bytes);

}  // namespace dyad
