#include "training/validation_rows.h"

#include <filesystem>

#include <gtest/gtest.h>

#include <dyad/error.h>
#include <dyad/evaluate.h>

#include "temporary_folder.h"

namespace dyad {
namespace {

class ValidationRowsTest : public test::TemporaryFolderTest {
 protected:
  ValidationRowsTest() {
    map_.target.name = "y";
    Column number;
    number.name = "x";
    Column category;
    category.name = "c";
    category.role = Column::Role::categorical;
    map_.set_columns({number, category});
    (void)map_.encode_category(1, "a", true);
  }

  /// Number of rows of a copy. `removes_file`: the file is removed before copying.
  [[nodiscard]] Index copied(ValidationRows<double>& rows, bool removes_file) {
    if (removes_file) std::filesystem::remove(options_.validation_path);
    const auto copy = rows.copy(map_);
    return copy ? copy->count() : 0;
  }

  TrainOptions options_;
  FeatureMap map_;
};

TEST_F(ValidationRowsTest, ErrorRestoresGivenRange) {
  options_.validation_path = write("validation.csv", "x,c,y\n1,a,2\n1,a,none\n");
  map_.target.low = 0;
  map_.target.high = 1;
  map_.target.is_range_given = true;
  ValidationRows<double> rows(options_, {});
  EXPECT_THROW(rows.read(map_), DataError);
  EXPECT_TRUE(map_.target.is_range_given);
}

TEST_F(ValidationRowsTest, ValueTooLargeForThePrecisionIsRejected) {
  options_.validation_path = write("validation.csv", "x,c,y\n1e39,a,2\n");
  ValidationRows<float> in_single(options_, {});
  EXPECT_THROW(in_single.read(map_), DataError);
  ValidationRows<double> in_double(options_, {});
  EXPECT_NO_THROW(in_double.read(map_));
}

TEST_F(ValidationRowsTest, FileIsReadOnceIfMapDoesNotGrow) {
  for (const double memory : {1e9, 1.0}) {  // in memory, on disk
    options_.memory = memory;
    options_.validation_path = write("validation.csv", "x,c,y\n1,a,2\n1,b,3\n");
    ValidationRows<double> rows(options_, {});
    rows.read(map_);
    EXPECT_EQ(copied(rows, true), 2);
  }
}

TEST_F(ValidationRowsTest, FileIsReadOnceIfAllCategoriesWereKnown) {
  options_.validation_path = write("validation.csv", "x,c,y\n1,a,2\n");
  ValidationRows<double> rows(options_, {});
  rows.read(map_);
  (void)map_.encode_category(1, "b", true);
  EXPECT_EQ(copied(rows, true), 1);
}

TEST_F(ValidationRowsTest, FileIsReadAgainIfUnknownCategoriesWereAdded) {
  options_.validation_path = write("validation.csv", "x,c,y\n1,b,2\n");
  ValidationRows<double> rows(options_, {});
  rows.read(map_);
  (void)map_.encode_category(1, "b", true);
  (void)write("validation.csv", "x,c,y\n1,b,2\n1,b,3\n");
  EXPECT_EQ(copied(rows, false), 2);
  EXPECT_EQ(copied(rows, true), 2);
}

TEST_F(ValidationRowsTest, MetricsOfCachedRowsEqualThoseOfTheFile) {
  std::string text = "x,c,y,w\n";
  for (int i = 0; i < 5000; ++i)
    text += std::to_string(i % 17) + ",k" + std::to_string(i % 5) + "," + std::to_string(i % 17 + (i % 5) * (i % 3)) +
            "," + std::to_string(i % 2) + "\n";
  options_.data.paths = {write("rows.csv", text)};
  options_.validation_path = write("validation.csv", text);
  options_.columns.target = "y";
  options_.columns.weight = "w";
  options_.model_path = path("m.dyad");
  TrainHooks hooks;
  hooks.start = [&](const TrainStart&) { std::filesystem::remove(options_.validation_path); };
  const TrainSummary summary = train(options_, hooks);
  PredictOptions evaluation;
  evaluation.model_path = options_.model_path;
  evaluation.data.paths = options_.data.paths;
  const Metrics file_metrics = evaluate(evaluation).metrics.value();
  ASSERT_TRUE(summary.validation);
  EXPECT_EQ(summary.validation->weight, file_metrics.weight);
  EXPECT_EQ(summary.validation->rmse, file_metrics.rmse);
  EXPECT_EQ(summary.validation->r2, file_metrics.r2);
}

}  // namespace
}  // namespace dyad
