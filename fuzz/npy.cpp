#include <algorithm>
#include <cmath>

#include <dyad/error.h>

#include "fuzz.h"
#include "io/npy.h"

namespace dyad::fuzz {
namespace {

/// Arrays with more columns are skipped: the header may declare any number of columns, and this target allocates a
/// buffer of three rows.
constexpr Index max_columns = 1 << 20;

/// Reads the whole array, three rows at a time.
void read_all(const std::string& bytes) {
  const MemoryFile file(bytes);
  NpyReader reader(file.path());
  if (reader.columns() > max_columns) return;
  std::vector<double> values(static_cast<std::size_t>(reader.columns()) * 3);
  Index rows_read = 0;
  while (const Index count = reader.next(values)) {
    rows_read += count;
    require(rows_read <= reader.rows(), "there are no more rows than the header declares");
    require(static_cast<std::size_t>(rows_read) <= bytes.size(), "every row has at least one byte in the file");
    require(std::all_of(values.begin(), values.begin() + count * reader.columns(),
                        [](double value) { return std::isfinite(value); }),
            "values are finite");
  }
  require(rows_read == reader.rows(), "all declared rows are read");
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  allow_exception<dyad::DataError>([&] { read_all(text_of(data, size)); });
  return 0;
}
