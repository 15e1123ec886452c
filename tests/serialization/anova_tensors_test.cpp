#include "serialization/anova_tensors.h"

#include <limits>

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "base/random.h"

namespace dyad {
namespace {

/// A model of a numeric column with missing values, a categorical column and their pair.
AnovaModel example_anova() {
  AnovaModel model;
  model.intercept = 0.25;
  AnovaAxis number;
  number.column = 0;
  number.knots = {-1, 0.5, 2};
  number.has_missing_level = true;
  AnovaAxis category;
  category.column = 1;
  category.is_categorical = category.is_discrete = true;
  category.levels = {7, 3};
  model.axes = {number, category};
  Random random(1, 0);
  for (const std::vector<Index>& axes : {std::vector<Index>{0}, {1}, {0, 1}}) {
    AnovaBlock block;
    block.axes = axes;
    block.variance = random.uniform();
    for (Index i = 0; i < model.block_size(block); ++i) {
      block.values.push_back(random.normal());
      block.deviations.push_back(random.uniform());
    }
    model.posterior.factors.push_back(random_normal<double>(random, model.block_size(block), 2));
    model.blocks.push_back(block);
  }
  model.posterior.root = random_normal<double>(random, 6, 6).triangularView<Eigen::Lower>();
  model.posterior.center = random_normal<double>(random, 6, 1);
  model.posterior.intercept_variance = 0.5;
  model.posterior.noise_variance = 0.125;
  AnovaAxis prediction;  // behind the columns of the table
  prediction.column = 2;
  prediction.knots = {-1, 1};
  model.log_noise.intercept = -0.5;
  model.log_noise.axes = {category, prediction};
  model.log_noise.blocks.resize(2);
  for (const Index axis : {0, 1}) model.log_noise.blocks[static_cast<std::size_t>(axis)] = {{axis}, {0.3, -0.7}, {}, 0};
  return model;
}

ColumnTable example_table() {
  ColumnTable table;
  table.columns.resize(2);
  table.columns[0].values = {-3, 0, 1, 2, std::numeric_limits<double>::quiet_NaN()};
  table.columns[1].is_categorical = true;
  table.columns[1].values = {3, 7, -1, 5, 3};
  return table;
}

TEST(AnovaTensors, RoundTripKeepsPredictionsAndVariances) {
  const AnovaModel model = example_anova();
  Safetensors file;
  add_anova_model(model, file);
  const ModelReader reader(file, "m.dyad");
  ASSERT_TRUE(has_anova_model(reader));
  const AnovaModel loaded = read_anova_model(reader, 2);
  const ColumnTable table = example_table();
  std::vector<double> before(5);
  std::vector<double> after(5);
  model.predict(table, before);
  loaded.predict(table, after);
  EXPECT_EQ(before, after);
  model.predict_variances(table, before);
  loaded.predict_variances(table, after);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-5 * before[i]);
  model.predict_noise(table, before);
  loaded.predict_noise(table, after);
  EXPECT_EQ(before, after);
  EXPECT_NE(before[0], before[1]);
  EXPECT_EQ(loaded.axes, model.axes);
  EXPECT_EQ(loaded.posterior.noise_variance, model.posterior.noise_variance);
}

TEST(AnovaTensors, TruncatedOrMissingTensorsAreRejected) {
  Safetensors file;
  add_anova_model(example_anova(), file);
  for (const auto& [name, tensor] : file.tensors) {
    Safetensors damaged = file;
    damaged.tensors.erase(name);
    // Without this tensor, the variance of the noise is constant.
    if (name != "anova.noise.intercept") {
      EXPECT_THROW((void)read_anova_model(ModelReader(damaged, "m.dyad"), 2), DataError) << name;
    }
    damaged = file;
    const std::size_t size = tensor.dtype == "F32" ? 4 : 8;
    damaged.tensors[name].bytes.resize(tensor.bytes.size() - size);
    EXPECT_THROW((void)read_anova_model(ModelReader(damaged, "m.dyad"), 2), DataError) << name;
  }
  EXPECT_THROW((void)read_anova_model(ModelReader(file, "m.dyad"), 1), DataError);  // an axis refers to column 1
}

}  // namespace
}  // namespace dyad
