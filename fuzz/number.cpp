#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "fuzz.h"
#include "io/parse_number.h"

/// We read what the standard library reads, to the last bit; besides, a plus sign and what is out of range.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string text = text_of(data, size);
  const char* end = text.data() + text.size();
  double ours = 0;
  const char* our_end = dyad::parse_number(text.data(), end, ours);
  const bool has_plus = text.starts_with('+') && !text.starts_with("+-");
  double theirs = 0;
  const auto [their_end, error] = std::from_chars(text.data() + (has_plus ? 1 : 0), end, theirs);
  require((our_end == nullptr) == (error == std::errc::invalid_argument), "a number is one for the standard library");
  if (our_end == nullptr) return 0;
  require(our_end == their_end, "a number ends where it ends for the standard library");
  if (error == std::errc::result_out_of_range)
    require(std::isinf(ours) || std::abs(ours) < std::numeric_limits<double>::min(),
            "what is out of range is inf or 0");
  else
    require(std::memcmp(&ours, &theirs, sizeof(double)) == 0 || (std::isnan(ours) && std::isnan(theirs)),
            "a number is rounded correctly");
  return 0;
}
