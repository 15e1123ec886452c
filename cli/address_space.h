#pragma once

#include <string>

namespace dyad::cli {

/// Compares the limit on the address space (`ulimit -v`) with the reservations of OpenBLAS and the C library. OpenBLAS
/// blocks forever in its first thread if they exceed the limit.
/// \return an error message, or an empty string if the limit suffices
std::string address_space_error();

}  // namespace dyad::cli
