#include "io/npy.h"

#include <cmath>

#include <dyad/error.h>

#include "io/bytes_support.h"
#include "io/row_text.h"

namespace dyad {
namespace {

template <typename Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

std::string header(const std::string& dictionary) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(dictionary.size());
  text += '\0';
  return text + dictionary;
}

class NpyReaderTest : public test::TemporaryFolderTest {
 protected:
  [[nodiscard]] std::vector<double> read_all(const std::string& bytes, std::size_t buffer_size = 1000) const {
    NpyReader reader(write("array.npy", bytes));
    std::vector<double> all;
    std::vector<double> buffer(buffer_size);
    while (const Index count = reader.next(buffer))
      all.insert(all.end(), buffer.begin(), buffer.begin() + count * reader.columns());
    return all;
  }
  [[nodiscard]] std::string error_message(const std::string& bytes) const {
    try {
      (void)read_all(bytes);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }
};

TEST_F(NpyReaderTest, LimitsTheNumberOfColumns) {
  const std::string text = error_message(header("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 536870912), }"));
  for (const char* expected : {"536870912 columns", "ReadLimits::max_columns = 262144", "raise the limit"})
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  const std::string file = write("wide.npy", make_npy_header(1, 3) + bytes_of<double>({1, 2, 3}));
  EXPECT_EQ(NpyReader(Input(file, {}, {.max_columns = 3})).columns(), 3);
  EXPECT_THROW(NpyReader(Input(file, {}, {.max_columns = 2})), DataError);
}

TEST_F(NpyReaderTest, ReadsGeneratedFiles) {
  const std::vector<double> numbers{1, 2, 3, 4, 5, -6.5};
  const std::string bytes = make_npy_header(3, 2) + bytes_of(numbers);
  EXPECT_EQ(read_all(bytes), numbers);
  EXPECT_EQ(read_all(bytes, 3), numbers);
  EXPECT_EQ(read_all(make_npy_header(6, 0) + bytes_of(numbers)), numbers);
  EXPECT_EQ(read_all(test::gzipped(bytes)), numbers);
}

TEST_F(NpyReaderTest, ReadsAllElementTypes) {
  const auto array = [](const std::string& descr, const std::string& numbers) {
    return header("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }") + numbers;
  };
  EXPECT_EQ(read_all(array("<f4", bytes_of<float>({0.5F, -2}))), (std::vector<double>{0.5, -2}));
  EXPECT_EQ(read_all(array("<i8", bytes_of<std::int64_t>({-5, 7}))), (std::vector<double>{-5, 7}));
  EXPECT_EQ(read_all(array("<i4", bytes_of<std::int32_t>({-5, 7}))), (std::vector<double>{-5, 7}));
  EXPECT_EQ(read_all(array("<i2", bytes_of<std::int16_t>({-5, 7}))), (std::vector<double>{-5, 7}));
  EXPECT_EQ(read_all(array("|i1", bytes_of<std::int8_t>({-5, 7}))), (std::vector<double>{-5, 7}));
  EXPECT_EQ(read_all(array("<u2", bytes_of<std::uint16_t>({5, 60000}))), (std::vector<double>{5, 60000}));
  EXPECT_EQ(read_all(array("|b1", bytes_of<std::uint8_t>({0, 1}))), (std::vector<double>{0, 1}));
}

TEST_F(NpyReaderTest, ErrorsNameTheExpectation) {
  const auto expect_message = [&](const std::string& bytes, const std::string& expected) {
    EXPECT_NE(error_message(bytes).find(expected), std::string::npos) << error_message(bytes);
  };
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6};
  expect_message("", "cut off");
  expect_message("this is no array", "NumPy array file");
  expect_message(make_npy_header(3, 2) + bytes_of(numbers).substr(1), "cut off");
  expect_message(make_npy_header(3, 2).substr(0, 30), "cut off");
  expect_message(make_npy_header(3, 2) + bytes_of<double>({1, 2, 3, NAN, 5, 6}),
                 "row 2, column 2: expected a finite number");
  {
    NpyReader reader(write("large.npy", make_npy_header(1, 2) + bytes_of<double>({1e70, -1e71})), 1e70);
    std::vector<double> values(2);
    EXPECT_THROW(reader.next(values), DataError);
  }
  expect_message(header("{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }"), "little-endian");
  expect_message(header("{'descr': '<U5', 'fortran_order': False, 'shape': (2,), }"), "little-endian numbers");
  expect_message(header("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }"), "4 or 8");
  expect_message(header("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }"), "Fortran order");
  expect_message(header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2, 2), }"), "got 3");
  expect_message(header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }"), "got 0");
  expect_message(header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 0), }"), "column");
  expect_message(header("{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }"), "shape");
  expect_message(header("nonsense"), "little-endian");
}

}  // namespace
}  // namespace dyad
