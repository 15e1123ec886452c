#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include <dyad/rows.h>

#include "io/byte_stream.h"

namespace dyad {

/// Reads a NumPy array file (.npy, versions 1 to 3 of the format in numpy.lib.format) row by row. The array has one or
/// two dimensions in C order, and elements of 1, 2, 4 or 8 bytes: little-endian floats (4 or 8 bytes) or integers, or
/// booleans. Throws DataError for other arrays, for a truncated file, for infinity, and for NaN unless
/// `allows_nan` is true. Not thread-safe.
class NpyReader {
 public:
  /// `max_magnitude`: numbers with a larger absolute value are a DataError. `allows_nan`: NaN is a missing value.
  explicit NpyReader(const Input& input, double max_magnitude = std::numeric_limits<double>::max(),
                     bool allows_nan = false);

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index columns() const { return columns_; }  ///< 1 if the array has one dimension

  /// Reads the next values.size() / columns() rows, or the remaining ones if these are fewer. Returns their number.
  Index next(std::span<double> values);

 private:
  void read_header(const ReadLimits& limits);
  /// Reads exactly buffer.size() bytes. Throws DataError if the file has fewer.
  void fill(std::span<char> buffer);
  [[noreturn]] void fail(const std::string& what) const;

  ByteStream bytes_;
  double max_magnitude_;
  bool allows_nan_;
  Index rows_ = 0;
  Index columns_ = 1;
  Index rows_read_ = 0;
  char kind_ = 'f';  ///< f, i, u or b, as in the `descr` field of the header
  std::size_t element_bytes_ = 8;
  std::vector<char> raw_;  ///< the elements of one call of next()
};

}  // namespace dyad
