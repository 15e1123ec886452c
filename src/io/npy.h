#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include <dyad/rows.h>

#include "io/byte_stream.h"

namespace dyad {

/// A NumPy array file of one or two dimensions, read row by row: little-endian floats or integers of any size, or
/// booleans, in C order. Throws DataError for anything else, for a file that is cut off, and for NaN or infinity.
class NpyReader {
 public:
  /// Numbers beyond `largest` in size are refused, too. `allows_nan`: NaN is a missing value.
  explicit NpyReader(const Input& input, double largest = std::numeric_limits<double>::max(), bool allows_nan = false);

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index columns() const { return columns_; }  ///< 1 for an array of one dimension

  /// Reads the next rows, at most as many as fit into `values`, which holds whole rows. Returns how many.
  Index next(std::span<double> values);

 private:
  void read_header(const ReadLimits& limits);
  void fill(std::span<char> buffer);
  [[noreturn]] void fail(const std::string& what) const;

  ByteStream bytes_;
  double largest_;
  bool allows_nan_;
  Index rows_ = 0;
  Index columns_ = 1;
  Index done_ = 0;
  char kind_ = 'f';  ///< f, i, u or b, as in the array's descr
  std::size_t width_ = 8;
  std::vector<char> raw_;
};

}  // namespace dyad
