#include <array>

#include <dyad/data_error.h>

#include "fuzz.h"
#include "io/csv.h"

namespace dyad::fuzz {
namespace {

void read_all(const std::string& text, char separator) {
  std::array<bool, 256> occurs{};
  for (const char c : text) occurs[static_cast<unsigned char>(c)] = true;
  const MemoryFile file(text);
  CsvReader reader(file.path(), separator);
  const std::size_t columns = reader.names().size();
  require(columns > 0, "a table has columns");
  CsvBlock block;
  std::int64_t last_line = 0;
  std::size_t bytes = 0;
  while (reader.next(block)) {
    require(block.columns == columns, "all rows have as many cells as the header");
    require(block.cells.size() == block.rows() * columns, "there is a cell for every column of every row");
    for (const std::int64_t line : block.lines) {
      require(line > last_line, "lines are counted upwards");
      last_line = line;
    }
    for (const std::string_view cell : block.cells) {
      bytes += cell.size();
      for (const char c : cell) require(occurs[static_cast<unsigned char>(c)], "a cell is part of the text");
    }
    require(bytes <= text.size(), "no part of the text is in two cells");
  }
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string text = text_of(data, size);
  if (is_packed(text)) return 0;
  for (const char separator : {',', '\t'}) may_refuse<dyad::DataError>([&] { read_all(text, separator); });
  return 0;
}
