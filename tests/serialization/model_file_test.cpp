#include "serialization/model_file.h"

#include <filesystem>
#include <fstream>

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "base/random.h"
#include "serialization/checksum.h"
#include "serialization/safetensors.h"
#include "support.h"

namespace dyad {
namespace {

ModelFile example(Precision precision = Precision::double_precision) {
  ModelFile file;
  FeatureMap& map = file.features;
  map.target.name = "price";
  map.target.scaling = {12.5, 3.25, -1e308, 1e308};
  map.weight = "count";
  Column age;
  age.name = "age, \"in\" years\n";
  age.scaling = {40, 11.0 / 3, -3, 1e6};
  age.has_missing_indicator = true;
  Column city;
  city.name = "Größe";
  city.role = Column::Role::categorical;
  map.set_columns({age, city});
  for (const char* name : {"Bonn", "", "two\nlines", "\xff not UTF-8"}) (void)map.encode_category(1, name, true);
  file.model = test::random_model<double>(map.dim(), 2, 1);
  file.model.squares.assign(static_cast<std::size_t>(map.dim()), 0.5);
  if (precision == Precision::single_precision)
    for (auto* numbers : {&file.model.weights, &file.model.factors, &file.model.spectrum, &file.model.squares})
      for (double& number : *numbers) number = static_cast<float>(number);
  file.model.intercept = 0.25;
  file.precision = precision;
  file.training = {{"rows", "17"}, {"solver", "moment"}};
  file.state = {{"sums", {1, 2, 1.0 / 3}}, {"nothing", {}}};
  file.annotations = {{"estimator", "Example"}, {"text", "\"quoted\"\n\u00e4"}};
  return file;
}

/// The example as an average of samples, with one group of unknown features.
ModelFile sampled_example() {
  ModelFile file = example();
  Random random(3, 0);
  SampledPosterior posterior;
  posterior.samples = 40;
  posterior.log_variance = -0.5;
  posterior.log_noise = 0.25;
  for (Index j = 0; j < file.model.dim() + 1; ++j) {
    posterior.log_variances.push_back(random.normal());
    posterior.log_noise_factors.push_back(random.normal());
    posterior.log_noise_deviations.push_back(random.uniform());
  }
  posterior.unknown_weights = {random.normal()};
  for (Index c = 0; c < file.model.rank(); ++c) posterior.unknown_factors.push_back(random.normal());
  file.sampled = posterior;
  return file;
}

std::string error_of(const std::string& bytes) {
  try {
    (void)ModelFile::from_bytes(bytes, "m.dyad");
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), "m.dyad");
    return error.what();
  }
  return "";
}

/// The example with a text of its header replaced, and a valid length and checksum.
std::string example_with(const std::string& from, const std::string& to) {
  std::string bytes = example().to_bytes();
  EXPECT_NE(bytes.find(from), std::string::npos) << from;
  bytes.replace(bytes.find(from), from.size(), to);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  length += to.size() - from.size();
  std::memcpy(bytes.data(), &length, sizeof length);
  write_checksum(bytes);
  return bytes;
}

TEST(ModelFile, StoresThePosteriorOfAnAverageOfSamples) {
  const ModelFile file = sampled_example();
  const ModelFile loaded = ModelFile::from_bytes(file.to_bytes(), "m.dyad");
  ASSERT_TRUE(loaded.sampled);
  EXPECT_EQ(loaded.sampled->samples, 40);
  EXPECT_EQ(loaded.sampled->log_variance, file.sampled->log_variance);
  EXPECT_EQ(loaded.sampled->log_variances, file.sampled->log_variances);
  EXPECT_EQ(loaded.sampled->log_noise, file.sampled->log_noise);
  EXPECT_EQ(loaded.sampled->log_noise_factors, file.sampled->log_noise_factors);
  EXPECT_EQ(loaded.sampled->log_noise_deviations, file.sampled->log_noise_deviations);
  EXPECT_EQ(loaded.sampled->unknown_weights, file.sampled->unknown_weights);
  EXPECT_EQ(loaded.sampled->unknown_factors, file.sampled->unknown_factors);
  EXPECT_FALSE(ModelFile::from_bytes(example().to_bytes(), "m.dyad").sampled);
}

TEST(ModelFile, RejectsAPosteriorThatDoesNotMatchTheModel) {
  for (const auto change :
       {+[](SampledPosterior& p) { p.log_variances.pop_back(); },
        +[](SampledPosterior& p) { p.log_noise_factors.push_back(0); },
        +[](SampledPosterior& p) { p.unknown_factors.push_back(0); }, +[](SampledPosterior& p) { p.samples = 0; },
        +[](SampledPosterior& p) { p.log_variances[1] = std::nan(""); }}) {
    ModelFile file = sampled_example();
    change(*file.sampled);
    EXPECT_NE(error_of(file.to_bytes()).find("posterior"), std::string::npos);
  }
}

TEST(ModelFile, RoundTripPreservesContent) {
  for (const Precision precision : {Precision::double_precision, Precision::single_precision}) {
    const ModelFile file = example(precision);
    const ModelFile restored = ModelFile::from_bytes(file.to_bytes(), "m.dyad");
    EXPECT_EQ(restored.to_bytes(), file.to_bytes());
    EXPECT_EQ(restored.model.weights, file.model.weights);
    EXPECT_EQ(restored.model.factors, file.model.factors);
    EXPECT_EQ(restored.model.spectrum, file.model.spectrum);
    EXPECT_EQ(restored.model.squares, file.model.squares);
    EXPECT_EQ(restored.model.intercept, file.model.intercept);
    EXPECT_EQ(restored.precision, precision);
    EXPECT_EQ(restored.training, file.training);
    EXPECT_EQ(restored.state, file.state);
    EXPECT_EQ(restored.annotations, file.annotations);
    EXPECT_EQ(restored.features.target.name, "price");
    EXPECT_EQ(restored.features.target.scaling.scale, 3.25);
    EXPECT_EQ(restored.features.weight, "count");
    EXPECT_EQ(restored.features.columns()[0].name, "age, \"in\" years\n");
    EXPECT_EQ(restored.features.columns()[0].scaling.scale, 11.0 / 3);
    for (Index j = 0; j < file.features.dim(); ++j) EXPECT_EQ(restored.features.name(j), file.features.name(j));
  }
}

TEST(ModelFile, RoundTripPreservesBilinearHashedModel) {
  ModelFile file;
  file.features.kind = Kind::bilinear;
  file.features.layout = Layout::sparse;
  file.features.hash_bits = 3;
  file.features.right_first = 5;
  file.features.set_columns({});
  file.model = test::random_model<double>(file.features.dim(), 2, 1, file.features.left_dim());
  const ModelFile restored = ModelFile::from_bytes(file.to_bytes(), "m.dyad");
  EXPECT_EQ(restored.to_bytes(), file.to_bytes());
  EXPECT_EQ(restored.model.left_dim, 8);
  EXPECT_EQ(restored.model.dim(), 16);
}

TEST(ModelFile, TruncatedBytesAreRejected) {
  const std::string bytes = example().to_bytes();
  for (std::size_t length = 0; length < bytes.size(); length += 7)
    EXPECT_NE(error_of(bytes.substr(0, length)), "") << length;
  EXPECT_NE(error_of(bytes + "x"), "");
}

TEST(ModelFile, NewerVersionIsNamedInError) {
  const std::string message = error_of(example_with("\"format_version\":\"2\"", "\"format_version\":\"3\""));
  EXPECT_NE(message.find("format version 3"), std::string::npos) << message;
  EXPECT_NE(message.find("newer"), std::string::npos);
}

TEST(ModelFile, OtherFormatsAreRejected) {
  EXPECT_NE(error_of(example_with("\"format\":\"dyad\"", "\"format\":\"else\"")).find("another safetensors"),
            std::string::npos);
  Safetensors other;
  other.tensors["weight"] = make_tensor(std::vector<float>{1, 2}, {2});
  EXPECT_NE(error_of(other.to_bytes()).find("another safetensors"), std::string::npos);
  EXPECT_NE(error_of("user,movie,rating\n1,2,3\n"), "");
}

/// The nesting exceeds what recursive copying could handle on the stack.
TEST(ModelFile, DeepNestingIsRejected) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_NE(error_of(example_with("\\\"target\\\":{", "\\\"target\\\":" + deep + ",\\\"was\\\":{")), "");
  EXPECT_NE(error_of(example_with("\"__metadata__\":{", "\"x\":" + deep + ",\"__metadata__\":{")), "");
}

TEST(ModelFile, InvalidFieldsAreRejected) {
  for (const auto& [from, to] :
       {std::pair{"\"weights\"", "\"w_ights\""},
        {"\\\"kind\\\":\\\"gfm\\\"", "\\\"kind\\\":\\\"gfx\\\""},
        {"\\\"scale\\\":3.25", "\\\"scale\\\":-3.2"},
        {"\\\"left_count\\\":6", "\\\"left_count\\\":7"},
        {"\\\"hash_bits\\\":0", "\\\"hash_bits\\\":7"},
        {"\\\"columns\\\":[{", "\\\"columnx\\\":[{"},
        {"\\\"least_count\\\":1", "\\\"least_count\\\":1.5"},
        {"\\\"centre\\\":", "\\\"centre\\\":1e300,\\\"was\\\":"},
        {"\\\"name\\\":\\\"Größe\\\"", "\\\"name\\\":\\\"age, \\\\\\\"in\\\\\\\" years\\\\n\\\""},
        {"\\\"right_count\\\":0", "\\\"right_count\\\":1e300"},
        {"\\\"range_is_given\\\":false", "\\\"range_is_given\\\":0"}})
    EXPECT_NE(error_of(example_with(from, to)), "") << from;
  ModelFile file = example();
  file.model.weights[2] = NAN;
  EXPECT_NE(error_of(file.to_bytes()).find("not finite"), std::string::npos);
}

TEST(ModelFile, InvalidFeatureValuesAreRejected) {
  const auto column = [](const ModelFile& file) { return file.features.columns().front(); };
  ModelFile file;
  file.model = Model<double>(1, 1);
  Column number;
  number.name = "a";
  file.features.set_columns({number});
  RowBlock<double> block;
  block.is_dense = true;
  block.dim = 1;
  block.values = {3, -1};
  block.lines = {1, 2};
  file.features.update_values(block);
  const std::string bytes = file.to_bytes();
  const std::string list = "[3.0,-1.0]";
  ASSERT_NE(bytes.find(list), std::string::npos);
  EXPECT_TRUE(column(ModelFile::from_bytes(bytes, "m.dyad")).values->is_full());
  for (const char* invalid : {"[3.0,-1,8]", "[3.0,null]", "{\"3.0\":[]}", "          "}) {
    std::string changed = bytes;
    changed.replace(changed.find(list), list.size(), invalid);
    write_checksum(changed);
    EXPECT_NE(error_of(changed), "") << invalid;
  }

  ModelFile hashed;
  hashed.model = Model<double>(8, 1);
  hashed.features.hash_bits = 3;
  Column category = number;
  category.role = Column::Role::categorical;
  hashed.features.set_columns({category});
  std::string flags = hashed.to_bytes();
  const std::string shape = "\"flags\":{\"dtype\":\"U8\",\"shape\":[1]";
  ASSERT_NE(flags.find(shape), std::string::npos);
  EXPECT_EQ(ModelFile::from_bytes(flags, "m.dyad").features.linear_squares().size(), 8U);
  hashed.features.clear_values();
  EXPECT_EQ(ModelFile::from_bytes(hashed.to_bytes(), "m.dyad").features.linear_squares().size(), 0U);
  flags.replace(flags.find("\"flags\""), 7, "\"flagx\"");
  write_checksum(flags);
  EXPECT_EQ(ModelFile::from_bytes(flags, "m.dyad").features.linear_squares().size(), 0U);
}

TEST(ModelFile, InconsistentFeatureCountIsRejected) {
  ModelFile file = example();
  for (auto* numbers : {&file.model.weights, &file.model.squares}) numbers->resize(9);
  file.model.factors.resize(18);
  std::string bytes = file.to_bytes();
  const std::string count = "\\\"left_count\\\":6";
  ASSERT_NE(bytes.find(count), std::string::npos);
  bytes.replace(bytes.find(count), count.size(), "\\\"left_count\\\":9");
  write_checksum(bytes);
  EXPECT_NE(error_of(bytes), "");
}

TEST(ModelFile, DamagedBytesDoNotCrash) {
  const std::string bytes = example().to_bytes();
  Random random(1, 0);
  for (int trial = 0; trial < 5000; ++trial) {
    std::string changed = bytes;
    for (int i = 0; i < 1 + trial % 3; ++i)
      changed[static_cast<std::size_t>(random.uniform() * static_cast<double>(bytes.size()))] =
          static_cast<char>(static_cast<int>(random.uniform() * 256));
    write_checksum(changed);
    try {
      const ModelFile file = ModelFile::from_bytes(changed, "m.dyad");
      EXPECT_EQ(file.model.dim(), file.features.dim());
    } catch (const DataError&) {
    }
  }
}

/// Files of the first format version must load in all later versions.
TEST(ModelFile, FormatVersion1Loads) {
  const ModelFile file = ModelFile::load(std::string(DYAD_STORED_MODELS) + "/model-format-1.dyad");
  EXPECT_EQ(file.features.target.name, "price");
  EXPECT_EQ(file.features.dim(), 6);
  EXPECT_EQ(file.features.name(2), "Größe=Bonn");
  EXPECT_EQ(file.model.intercept, 0.25);
  EXPECT_EQ(file.model.rank(), 2);
  EXPECT_EQ(file.model.squares, std::vector<double>(6, 0.5));
  EXPECT_EQ(file.training.at("rows"), "17");
  EXPECT_EQ(file.state.at("sums"), (std::vector<double>{1, 2, 1.0 / 3}));
  const Model<double> expected = example().model;
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(file.model.weights[j], expected.weights[j], 1e-15);
}

TEST(ModelFile, MissingFileAndFolderAreRejected) {
  EXPECT_THROW((void)ModelFile::load("no/such/model.dyad"), DataError);
  EXPECT_THROW((void)ModelFile::load("/"), DataError);
}

}  // namespace
}  // namespace dyad
