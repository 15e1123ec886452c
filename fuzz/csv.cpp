#include <array>

#include <dyad/error.h>

#include "fuzz.h"
#include "io/csv.h"

namespace dyad::fuzz {
namespace {

/// Reads the whole text as a table and checks the properties that hold for every accepted input.
void read_all(const std::string& text, char separator) {
  std::array<bool, 256> byte_occurs{};
  for (const char c : text) byte_occurs[static_cast<unsigned char>(c)] = true;
  const MemoryFile file(text);
  CsvReader reader(file.path(), separator);
  const std::size_t columns = reader.names().size();
  require(columns > 0, "a table has at least one column");
  CsvBlock block;
  std::int64_t last_line = 0;
  std::size_t bytes = 0;
  while (reader.next(block)) {
    require(block.columns == columns, "all rows have as many cells as the header");
    require(block.cells.size() == block.rows() * columns, "the number of cells is rows times columns");
    for (const std::int64_t line : block.lines) {
      require(line > last_line, "line numbers are strictly increasing");
      last_line = line;
    }
    for (const std::string_view cell : block.cells) {
      bytes += cell.size();
      for (const char c : cell)
        require(byte_occurs[static_cast<unsigned char>(c)], "cells contain only bytes of the text");
    }
    require(bytes <= text.size(), "cells do not overlap");
  }
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string text = text_of(data, size);
  if (is_compressed(text)) return 0;  // the properties compare the cells with the text before decompression
  for (const char separator : {',', '\t'}) allow_exception<dyad::DataError>([&] { read_all(text, separator); });
  return 0;
}
