#include "io/row_text.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

std::string header_of(Format format) {
  PlantedOptions problem;
  problem.kind = Kind::bilinear;
  problem.dim = 2;
  problem.right_dim = 1;
  return make_header(problem, format, 4);
}

DenseBlock<double> block_of_edge_cases() {
  DenseBlock<double> block;
  block.resize(4, 3);
  block.values = {1, 0, -2.5, 1e-300, 1e300, 0.1, -0.0, 3, 1.0 / 3, 0, 0, 0};
  block.targets = {1, -1e-7, 123456789.125, 0};
  return block;
}

std::string text_of(Format format) {
  std::string text;
  append_rows(format, block_of_edge_cases(), 0, 4, text);
  return text;
}

TEST(RowText, LibsvmRoundTripsWithoutZeros) {
  const auto block = block_of_edge_cases();
  std::istringstream lines(text_of(Format::libsvm));
  std::size_t row = 0;
  for (std::string line; std::getline(lines, line); ++row) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    EXPECT_EQ(std::stod(word), block.targets[row]);
    std::vector<double> x(3);
    while (words >> word) {
      const auto colon = word.find(':');
      x.at(std::stoul(word.substr(0, colon)) - 1) = std::stod(word.substr(colon + 1));
      EXPECT_NE(std::stod(word.substr(colon + 1)), 0);
    }
    for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(x[j], block.values[3 * row + j]);
  }
  EXPECT_EQ(row, 4);
}

TEST(RowText, TsvIsCsvWithTabs) {
  std::string csv = text_of(Format::csv);
  std::replace(csv.begin(), csv.end(), ',', '\t');
  EXPECT_EQ(text_of(Format::tsv), csv);
}

TEST(RowText, CsvRoundTripsWithColumnNames) {
  EXPECT_EQ(header_of(Format::csv), "left.1,left.2,right.1,y\n");
  EXPECT_EQ(header_of(Format::tsv), "left.1\tleft.2\tright.1\ty\n");
  const auto block = block_of_edge_cases();
  std::istringstream lines(text_of(Format::csv));
  std::size_t row = 0;
  for (std::string line; std::getline(lines, line); ++row) {
    std::istringstream cells(line);
    std::string cell;
    for (std::size_t j = 0; j < 3; ++j) {
      std::getline(cells, cell, ',');
      EXPECT_EQ(std::stod(cell), block.values[3 * row + j]);
    }
    std::getline(cells, cell, ',');
    EXPECT_EQ(std::stod(cell), block.targets[row]);
    EXPECT_FALSE(std::getline(cells, cell, ','));
  }
  EXPECT_EQ(row, 4);
}

TEST(RowText, NpyHasAnAlignedHeaderAndRawNumbers) {
  const std::string text = header_of(Format::npy);
  EXPECT_EQ(text.size() % 64, 0);
  EXPECT_EQ(text.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto length = static_cast<unsigned char>(text[8]) + 256U * static_cast<unsigned char>(text[9]);
  EXPECT_EQ(length + 10, text.size());
  EXPECT_NE(text.find("'shape': (4, 3)"), std::string::npos);
  EXPECT_NE(make_npy_header(4, 0).find("'shape': (4,)"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
  const auto block = block_of_edge_cases();
  const std::string body = text_of(Format::npy);
  ASSERT_EQ(body.size(), block.values.size() * sizeof(double));
  EXPECT_EQ(std::memcmp(body.data(), block.values.data(), body.size()), 0);
}

}  // namespace
}  // namespace dyad
