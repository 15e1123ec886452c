#pragma once

#include <string>

namespace dyad::cli {

/// What to tell the user where the process may not have the address space that it needs; empty: it may. Without enough
/// of it OpenBLAS waits for ever, from its first thread on.
std::string lack_of_address_space();

}  // namespace dyad::cli
