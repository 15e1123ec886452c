#include "serialization/class_models.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "serialization/model_container.h"

namespace dyad {
namespace {

TEST(ClassModels, RoundTripPreservesLabelsAndTheirType) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{{{"a", "b\"\n", "ä"}, "text"},
                                                                            {{"0", "1", "-7"}, "integer"},
                                                                            {{"0", "0.5", "2"}, "number"},
                                                                            {{"1", "x", "3"}, "text"}};
  for (const auto& [labels, type] : cases) {
    ClassModels models;
    models.target = "t";
    models.labels = labels;
    models.temperature = 1.25;
    models.precision = 40;
    models.parts = {"first", "", std::string("\0x", 2)};
    models.annotations = {{"estimator", "test"}};
    const std::string bytes = models.to_bytes();
    EXPECT_TRUE(ClassModels::is_class_file(bytes));
    const ClassModels loaded = ClassModels::from_bytes(bytes, "file");
    EXPECT_EQ(loaded.labels, labels);
    EXPECT_EQ(loaded.label_type(), type);
    EXPECT_EQ(loaded.temperature, 1.25);
    EXPECT_EQ(loaded.precision, 40);
    EXPECT_EQ(loaded.parts, models.parts);
    EXPECT_EQ(loaded.annotations, models.annotations);
    EXPECT_EQ(loaded.target, "t");
  }
}

TEST(ClassModels, OtherFilesAreRejected) {
  ModelContainer container;
  container.parts = {"a", "b", "c"};
  EXPECT_FALSE(ClassModels::is_class_file(container.to_bytes()));
  EXPECT_THROW((void)ClassModels::from_bytes(container.to_bytes(), "file"), DataError);
  for (const char* classes :
       {"", "[]", "{}", "{\"labels\":[\"a\",\"b\"],\"target\":\"\",\"temperature\":1,\"precision\":1}",
        "{\"labels\":[\"a\",\"b\",[]],\"target\":\"\",\"temperature\":1,\"precision\":1}",
        "{\"labels\":[\"a\",\"b\",\"c\"],\"target\":\"\",\"temperature\":-1,\"precision\":1}"}) {
    container.classes = classes;
    EXPECT_THROW((void)ClassModels::from_bytes(container.to_bytes(), "file"), DataError) << classes;
  }
  EXPECT_FALSE(ClassModels::is_class_file(""));
}

}  // namespace
}  // namespace dyad
