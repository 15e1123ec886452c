#include <algorithm>
#include <cmath>

#include <dyad/data_error.h>

#include "fuzz.h"
#include "io/npy.h"

namespace dyad::fuzz {
namespace {

void read_all(const std::string& bytes) {
  const MemoryFile file(bytes);
  NpyReader reader(file.path());
  if (reader.columns() > (1 << 20)) return;  // whoever reads rows must have room for one
  std::vector<double> values(static_cast<std::size_t>(reader.columns()) * 3);
  Index done = 0;
  while (const Index count = reader.next(values)) {
    done += count;
    require(done <= reader.rows(), "there are no more rows than the header says");
    require(static_cast<std::size_t>(done) <= bytes.size(), "every row stands in the file");
    require(std::all_of(values.begin(), values.begin() + count * reader.columns(),
                        [](double value) { return std::isfinite(value); }),
            "values are finite");
  }
  require(done == reader.rows(), "all rows are read");
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  may_refuse<dyad::DataError>([&] { read_all(text_of(data, size)); });
  return 0;
}
