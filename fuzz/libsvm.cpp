#include <cmath>

#include <dyad/error.h>

#include "fuzz.h"
#include "io/libsvm.h"

namespace dyad::fuzz {
namespace {

/// Reads the whole text in small blocks and checks the properties of every block.
void read_all(const std::string& text) {
  const MemoryFile file(text);
  LineReader reader(file.path());
  RowBlock<double> block;
  LineBlock lines;
  const BlockLimits limits{.max_rows = 5, .max_entries = 20};  // small, so that short inputs give several blocks
  while (reader.next(lines)) {
    while (!lines.text.empty()) {
      block.clear();
      parse_libsvm(lines, file.path(), limits, block);
      require(block.offsets.size() == static_cast<std::size_t>(block.count()) + 1,
              "there is one offset more than rows");
      require(block.targets.size() == static_cast<std::size_t>(block.count()), "every row has a target");
      require(block.columns.size() == block.values.size(), "every value has an index");
      for (const double y : block.targets) require(std::isfinite(y), "targets are finite");
      for (const double x : block.values) require(std::isfinite(x), "values are finite");
      for (std::size_t i = 0; i + 1 < block.offsets.size(); ++i)
        for (Index e = block.offsets[i]; e < block.offsets[i + 1]; ++e) {
          const auto entry = static_cast<std::size_t>(e);
          require(block.columns[entry] >= 0, "indices are nonnegative");
          require(e == block.offsets[i] || block.columns[entry] > block.columns[entry - 1],
                  "indices of a row are strictly increasing");
        }
    }
  }
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  allow_exception<dyad::DataError>([&] { read_all(text_of(data, size)); });
  return 0;
}
