#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "fuzz.h"
#include "io/parse_number.h"

/// Compares `parse_number` with std::from_chars. Both accept the same texts and round to the same bits. In addition,
/// `parse_number` accepts a leading plus sign and returns inf, 0 or a denormal for numbers out of range.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string text = text_of(data, size);
  const char* end = text.data() + text.size();
  double parsed = 0;
  const char* parsed_end = dyad::parse_number(text.data(), end, parsed);
  const bool has_plus = text.starts_with('+') && !text.starts_with("+-");
  double expected = 0;
  const auto [expected_end, error] = std::from_chars(text.data() + (has_plus ? 1 : 0), end, expected);
  require((parsed_end == nullptr) == (error == std::errc::invalid_argument),
          "a text is a number if and only if std::from_chars accepts it");
  if (parsed_end == nullptr) return 0;
  require(parsed_end == expected_end, "a number ends where std::from_chars ends it");
  if (error == std::errc::result_out_of_range)
    require(std::isinf(parsed) || std::abs(parsed) < std::numeric_limits<double>::min(),
            "a number out of range becomes inf, 0 or a denormal");
  else
    require(std::memcmp(&parsed, &expected, sizeof(double)) == 0 || (std::isnan(parsed) && std::isnan(expected)),
            "a number has the same bits as from std::from_chars");
  return 0;
}
