#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <dyad/dataset.h>
#include <dyad/error.h>
#include <dyad/evaluate.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"
#include "encoding/target.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

/// The same values as a table, a matrix and sparse rows, in memory and in files.
class LayoutConversion : public test::TemporaryFolderTest {
 protected:
  static constexpr Index count = 60;
  static constexpr Index width = 4;

  void make_rows(bool has_missing) {
    Random random(7, 0);
    for (Index i = 0; i < count; ++i) {
      double y = 0.1 * random.normal();
      for (Index j = 0; j < width; ++j) {
        const bool is_missing = has_missing && j == 2 && i % 5 == 0;
        values_.push_back(is_missing ? missing : random.uniform() < 0.4 ? 0 : 3 + 2 * random.normal());
        if (!is_missing) y += values_.back() * values_[static_cast<std::size_t>(i * width)];
      }
      targets_.push_back(y);
    }
    offsets_.assign(1, 0);
    for (Index i = 0; i < count; ++i) {
      for (Index j = 0; j < width; ++j) {
        const double value = values_[static_cast<std::size_t>(i * width + j)];
        if (value == 0) continue;
        indices_.push_back(static_cast<std::int32_t>(j));
        entries_.push_back(value);
      }
      offsets_.push_back(static_cast<std::int64_t>(entries_.size()));
    }
  }

  [[nodiscard]] DatasetView table() const {
    std::vector<ColumnView> columns;
    for (Index j = 0; j < width; ++j)
      columns.push_back(
          {.name = std::string(1, static_cast<char>('a' + j)), .numbers = values_.data() + j, .stride = width});
    return {.count = count, .features = columns, .targets = targets_, .weights = {}, .labels = {}};
  }
  [[nodiscard]] DatasetView matrix() const {
    return {.count = count,
            .features = MatrixView{.columns = width, .values = values_.data(), .row_stride = width},
            .targets = targets_,
            .weights = {},
            .labels = {}};
  }
  [[nodiscard]] DatasetView sparse(Index columns = width) const {
    return {
        .count = count,
        .features =
            SparseView{
                .columns = columns, .offsets = offsets_.data(), .indices = indices_.data(), .values = entries_.data()},
        .targets = targets_,
        .weights = {},
        .labels = {}};
  }

  /// Bytes of a model that was trained on `rows`.
  static std::string trained(const DatasetView& rows, Kind kind = Kind::gfm,
                             const std::vector<std::string>& right = {}) {
    TrainOptions options;
    options.data.dataset = &rows;
    options.kind = kind;
    options.columns.right = right;
    options.rank = 2;
    options.threads = 1;
    return train(options).model_bytes;
  }
  static std::vector<double> predicted(const std::string& model, const DatasetView& rows) {
    std::vector<double> values(static_cast<std::size_t>(rows.count));
    (void)Predictor::from_bytes(model).predict(rows, values);
    return values;
  }
  std::vector<double> predicted_file(const std::string& model, const std::string& file) {
    PredictOptions options;
    options.model_path = write("model.dyad", model);
    options.data.paths = {file};
    options.output_path = path("predictions.txt");
    (void)predict(options);
    std::istringstream lines(content(options.output_path));
    std::vector<double> values;
    for (double value = 0; lines >> value;) values.push_back(value);
    return values;
  }

  std::string csv_file() {
    std::string text = "d,c,b,a\n";
    for (Index i = 0; i < count; ++i)
      for (Index j = width; j-- > 0;) {
        const double value = values_[static_cast<std::size_t>(i * width + j)];
        text += (std::isnan(value) ? std::string() : format_shortest(value)) + (j == 0 ? "\n" : ",");
      }
    return write("rows.csv", text);
  }
  std::string npy_file() {
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (60, 4), }\n";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    return write("rows.npy",
                 bytes + header + std::string(reinterpret_cast<const char*>(values_.data()), values_.size() * 8));
  }
  std::string libsvm_file() {
    std::string text;
    for (Index i = 0; i < count; ++i) {
      text += '0';
      for (auto e = offsets_[static_cast<std::size_t>(i)]; e < offsets_[static_cast<std::size_t>(i) + 1]; ++e)
        text += " " + std::to_string(indices_[static_cast<std::size_t>(e)]) + ":" +
                format_shortest(entries_[static_cast<std::size_t>(e)]);
      text += '\n';
    }
    return write("rows.svm", text);
  }

  std::vector<double> values_;
  std::vector<double> targets_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> indices_;
  std::vector<double> entries_;
};

TEST_F(LayoutConversion, TableModelsAcceptAllLayouts) {
  make_rows(false);
  for (const bool is_bilinear : {false, true}) {
    const std::string model = is_bilinear ? trained(table(), Kind::bilinear, {"b", "d"}) : trained(table());
    const std::vector<double> expected = predicted(model, table());
    EXPECT_EQ(predicted(model, matrix()), expected);
    EXPECT_EQ(predicted(model, sparse()), expected);
    EXPECT_EQ(predicted_file(model, csv_file()), expected);
    EXPECT_EQ(predicted_file(model, npy_file()), expected);
    EXPECT_EQ(predicted_file(model, libsvm_file()), expected);
  }
}

TEST_F(LayoutConversion, NanIsMissingValueForTableModelsOnly) {
  make_rows(true);
  const std::string model = trained(table());
  const std::vector<double> expected = predicted(model, table());
  EXPECT_EQ(predicted(model, matrix()), expected);
  EXPECT_EQ(predicted(model, sparse()), expected);
  EXPECT_EQ(predicted_file(model, npy_file()), expected);
  EXPECT_THROW((void)trained(matrix()), DataError);
  EXPECT_THROW((void)trained(sparse()), DataError);
}

TEST_F(LayoutConversion, MatrixAndSparseModelsAcceptBothLayouts) {
  make_rows(false);
  const std::string of_matrix = trained(matrix());
  const std::vector<double> expected = predicted(of_matrix, matrix());
  EXPECT_EQ(predicted(of_matrix, sparse()), expected);
  EXPECT_EQ(predicted_file(of_matrix, libsvm_file()), expected);
  const std::string of_sparse = trained(sparse());
  const std::vector<double> expected_sparse = predicted(of_sparse, sparse());
  EXPECT_EQ(predicted(of_sparse, matrix()), expected_sparse);
  EXPECT_EQ(predicted_file(of_sparse, npy_file()), expected_sparse);
}

TEST_F(LayoutConversion, RejectsMismatchedRows) {
  make_rows(false);
  const std::string of_table = trained(table());
  DatasetView narrow = matrix();
  std::get<MatrixView>(narrow.features).columns = width - 1;
  EXPECT_THROW((void)predicted(of_table, narrow), std::invalid_argument);
  EXPECT_THROW((void)predicted(of_table, sparse(width + 1)), std::invalid_argument);
  EXPECT_THROW((void)predicted_file(of_table, write("wide.svm", "0 1:1 4:1\n")), DataError);
  EXPECT_THROW((void)predicted(trained(matrix()), table()), std::invalid_argument);
  EXPECT_THROW((void)predicted(trained(sparse()), table()), std::invalid_argument);

  DatasetView with_category = table();
  const std::vector<std::int32_t> codes(count);
  std::get<std::vector<ColumnView>>(with_category.features)[1] = {
      .name = "b", .is_categorical = true, .codes = codes.data(), .categories = {"x"}};
  EXPECT_THROW((void)predicted(trained(with_category), matrix()), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
