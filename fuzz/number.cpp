#include <charconv>
#include <cmath>
#include <cstring>

#include "fuzz.h"
#include "source/number.h"

/// Whatever the standard library reads is read by us, to the last bit.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string text = text_of(data, size);
  const char* end = text.data() + text.size();
  double ours = 0;
  const char* our_end = dyad::parse_number(text.data(), end, ours);
  require(our_end == nullptr || (our_end > text.data() && our_end <= end), "a number ends inside the text");
  double theirs = 0;
  const auto [their_end, error] = std::from_chars(text.data(), end, theirs);
  if (error == std::errc()) {
    require(our_end == their_end, "a number ends where it ends for the standard library");
    require(std::memcmp(&ours, &theirs, sizeof(double)) == 0 || (std::isnan(ours) && std::isnan(theirs)),
            "a number is rounded correctly");
  }
  return 0;
}
