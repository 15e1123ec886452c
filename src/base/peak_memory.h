#pragma once

#include <cstdint>

namespace dyad {

/// Peak resident set size of this process so far, in bytes.
std::int64_t peak_rss_bytes();

}  // namespace dyad
