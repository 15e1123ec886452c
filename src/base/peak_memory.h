#pragma once

#include <cstdint>

namespace dyad {

/// The most memory this process has held so far, in bytes.
std::int64_t peak_rss_bytes();

}  // namespace dyad
