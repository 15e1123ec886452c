#include "io/parse_number.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace dyad {
namespace {

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/// Parses any number that std::from_chars accepts, with an optional plus sign.
const char* parse_with_from_chars(const char* begin, const char* end, double& value) {
  if (begin != end && *begin == '+') {
    ++begin;
    if (begin != end && *begin == '-') return nullptr;
  }
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range)
    value = std::strtod(std::string(begin, stop).c_str(), nullptr);
  else if (error != std::errc())
    return nullptr;
  return stop;
}

}  // namespace

const char* parse_number(const char* begin, const char* end, double& value) {
  // Fast path (Clinger, How to read floating point numbers accurately, PLDI 1990): if the digits are an integer below
  // 2^53, and the power of ten is at most 10^22, both are exact doubles, and their quotient is correctly rounded.
  static constexpr std::array<double, 23> powers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr std::ptrdiff_t max_fast_digits = 18;  // 10^18 < 2^63: the integer does not overflow
  const char* at = begin;
  const bool negative = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;
  const char* digits = at;
  std::uint64_t mantissa = 0;
  while (at != end && is_digit(*at)) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*at++ - '0');
  std::ptrdiff_t count = at - digits;
  std::ptrdiff_t decimals = 0;
  if (at != end && *at == '.') {
    const char* point = at++;
    while (at != end && is_digit(*at)) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*at++ - '0');
    decimals = at - point - 1;
    count += decimals;
  }
  const bool has_exponent = at != end && (*at == 'e' || *at == 'E');
  if (count == 0 || count > max_fast_digits || has_exponent || mantissa >> 53 != 0)
    return parse_with_from_chars(begin, end, value);
  const double magnitude = static_cast<double>(mantissa) / powers[static_cast<std::size_t>(decimals)];
  value = negative ? -magnitude : magnitude;
  return at;
}

}  // namespace dyad
