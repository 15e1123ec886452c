#include "io/npy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include <dyad/error.h>

namespace dyad {
namespace {

/// The text after `'key': ` in the header, which is a Python dictionary. Empty if the key is missing.
std::string_view find_field(std::string_view header, const std::string& key) {
  const std::size_t at = header.find("'" + key + "'");
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size() + 2);
  rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
  return rest;
}

/// Converts values.size() elements of type Number, without alignment in `raw`, to double.
template <typename Number>
void convert(const std::vector<char>& raw, std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, raw.data() + i * sizeof(Number), sizeof(Number));
    values[i] = static_cast<double>(number);
  }
}

}  // namespace

NpyReader::NpyReader(const Input& input, double max_magnitude, bool allows_nan)
    : bytes_(input), max_magnitude_(max_magnitude), allows_nan_(allows_nan) {
  read_header(input.limits);
}

void NpyReader::fail(const std::string& what) const { throw DataError(bytes_.path(), 0, 0, what); }

void NpyReader::fill(std::span<char> buffer) {
  while (!buffer.empty()) {
    const std::size_t byte_count = bytes_.read_some(buffer);
    if (byte_count == 0) fail("the array is incomplete: the file is cut off");
    buffer = buffer.subspan(byte_count);
  }
}

void NpyReader::read_header(const ReadLimits& limits) {
  char preamble[8];
  fill(preamble);
  if (std::string_view(preamble, 6) != "\x93NUMPY") fail("expected a NumPy array file (.npy)");
  const int version = static_cast<unsigned char>(preamble[6]);
  if (version < 1 || version > 3) fail("expected version 1, 2 or 3 of the .npy format");
  unsigned char length[4] = {};
  fill({reinterpret_cast<char*>(length), version == 1 ? std::size_t{2} : std::size_t{4}});
  const std::size_t size =
      length[0] + (std::size_t{length[1]} << 8) + (std::size_t{length[2]} << 16) + (std::size_t{length[3]} << 24);
  // A bound on the memory for a damaged header. NumPy writes about 100 bytes for an array of numbers.
  constexpr std::size_t max_header_bytes = std::size_t{1} << 20;
  if (size > max_header_bytes)
    fail("the header has " + std::to_string(size) + " bytes, expected at most 2^20: the file is damaged");
  std::string header(size, '\0');
  fill(header);

  const std::string_view descr = find_field(header, "descr");
  constexpr std::string_view kinds = "fiub";
  if (descr.size() < 5 || (descr[1] != '<' && descr[1] != '|') || kinds.find(descr[2]) == std::string_view::npos)
    fail("expected little-endian numbers, got an array of " + std::string(descr.substr(0, descr.find_first_of(",}"))));
  kind_ = descr[2];
  element_bytes_ = static_cast<std::size_t>(descr[3] - '0');
  const bool is_supported =
      kind_ == 'f'   ? element_bytes_ == 4 || element_bytes_ == 8
      : kind_ == 'b' ? element_bytes_ == 1
                     : element_bytes_ == 1 || element_bytes_ == 2 || element_bytes_ == 4 || element_bytes_ == 8;
  if (!is_supported || descr[4] != '\'') fail("expected numbers of 1, 2, 4 or 8 bytes (floats: 4 or 8)");
  if (!find_field(header, "fortran_order").starts_with("False"))
    fail("the array is in Fortran order, expected C order; save numpy.ascontiguousarray(array) instead");

  std::string_view shape = find_field(header, "shape");
  std::vector<Index> sizes;
  if (shape.starts_with('(')) shape.remove_prefix(1);
  while (!shape.empty() && shape.front() != ')') {
    Index number = -1;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), number);
    if (error != std::errc() || number < 0)
      fail("the shape in the header cannot be read, expected (rows,) or (rows, columns)");
    sizes.push_back(number);
    shape.remove_prefix(static_cast<std::size_t>(end - shape.data()));
    shape.remove_prefix(std::min(shape.find_first_not_of(", "), shape.size()));
  }
  if (sizes.empty() || sizes.size() > 2)
    fail("expected an array of one or two dimensions, got " + std::to_string(sizes.size()));
  rows_ = sizes[0];
  columns_ = sizes.size() == 2 ? sizes[1] : 1;
  if (columns_ < 1) fail("expected at least 1 column, got " + std::to_string(columns_));
  if (columns_ > limits.max_columns)
    fail("the array has " + std::to_string(columns_) + " columns, more than ReadLimits::max_columns = " +
         std::to_string(limits.max_columns) + " (raise the limit, or remove columns)");
}

Index NpyReader::next(std::span<double> values) {
  const Index count = std::min(static_cast<Index>(values.size()) / columns_, rows_ - rows_read_);
  const auto numbers = static_cast<std::size_t>(count * columns_);
  raw_.resize(numbers * element_bytes_);
  fill(raw_);
  const std::span<double> filled = values.first(numbers);
  switch (kind_) {
    case 'f':
      element_bytes_ == 8 ? convert<double>(raw_, filled) : convert<float>(raw_, filled);
      break;
    case 'i':
      element_bytes_ == 8   ? convert<std::int64_t>(raw_, filled)
      : element_bytes_ == 4 ? convert<std::int32_t>(raw_, filled)
      : element_bytes_ == 2 ? convert<std::int16_t>(raw_, filled)
                            : convert<std::int8_t>(raw_, filled);
      break;
    default:
      element_bytes_ == 8   ? convert<std::uint64_t>(raw_, filled)
      : element_bytes_ == 4 ? convert<std::uint32_t>(raw_, filled)
      : element_bytes_ == 2 ? convert<std::uint16_t>(raw_, filled)
                            : convert<std::uint8_t>(raw_, filled);
  }
  const auto bad = std::find_if(filled.begin(), filled.end(), [&](double value) {
    return !(std::abs(value) <= max_magnitude_) && !(allows_nan_ && std::isnan(value));
  });
  if (bad != filled.end()) {
    const Index at = bad - filled.begin();
    fail("row " + std::to_string(rows_read_ + at / columns_ + 1) + ", column " + std::to_string(at % columns_ + 1) +
         ": expected a finite number" +
         (std::isfinite(*bad) ? " up to 1e70 in size; rescale this column" : ", got NaN or infinity"));
  }
  rows_read_ += count;
  return count;
}

}  // namespace dyad
