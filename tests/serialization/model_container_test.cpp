#include "serialization/model_container.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "serialization/checksum.h"
#include "serialization/model_file.h"
#include "serialization/safetensors.h"

namespace dyad {
namespace {

ModelContainer example_container() {
  ModelContainer container;
  container.annotations = {{"estimator", "Example"}, {"empty", ""}};
  container.parts = {std::string("\0\xff bytes", 8), ""};
  for (int i = 2; i < 12; ++i) container.parts.push_back(std::to_string(i));
  return container;
}

TEST(ModelContainer, RoundTripPreservesPartsAndAnnotations) {
  const ModelContainer restored = ModelContainer::from_bytes(example_container().to_bytes(), "c");
  EXPECT_EQ(restored.annotations, example_container().annotations);
  EXPECT_EQ(restored.parts, example_container().parts);
}

TEST(ModelContainer, TruncatedBytesAreRejected) {
  const std::string bytes = example_container().to_bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW((void)ModelContainer::from_bytes(bytes.substr(0, length), "c"), DataError) << length;
}

TEST(ModelContainer, OtherVersionsAndTypesAreRejected) {
  const Safetensors file = Safetensors::from_bytes(example_container().to_bytes(), "c");
  const auto expect_rejected = [](const Safetensors& changed) {
    std::string bytes = changed.to_bytes();
    write_checksum(bytes);
    EXPECT_THROW((void)ModelContainer::from_bytes(bytes, "c"), DataError);
  };
  Safetensors other = file;
  other.metadata["format_version"] = "2";
  expect_rejected(other);
  other = file;
  other.tensors["other"] = other.tensors["part.3"];
  expect_rejected(other);
  other = file;
  other.tensors["part.12"] = make_tensor(std::vector<double>{1}, {1});
  expect_rejected(other);
  other = file;
  other.metadata.erase(checksum_key);
  expect_rejected(other);
}

TEST(ModelContainer, SingleBitFlipsAreRejected) {
  std::string bytes = example_container().to_bytes();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    const auto read = [&] {
      const ModelContainer container = ModelContainer::from_bytes(bytes, "c");
      for (const std::string& part : container.parts) (void)ModelFile::from_bytes(part, "c");
    };
    EXPECT_THROW(read(), DataError) << "bit " << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  }
}

TEST(ModelContainer, ModelFileIsReadAsSinglePart) {
  Safetensors model;
  model.metadata = {{"format", "dyad"}, {"annotation.estimator", "Example"}};
  const ModelContainer container = ModelContainer::from_bytes(model.to_bytes(), "c");
  EXPECT_EQ(container.annotations, (std::map<std::string, std::string>{{"estimator", "Example"}}));
  EXPECT_EQ(container.parts, std::vector<std::string>{model.to_bytes()});
}

TEST(ModelContainer, IsRejectedByModelFile) {
  try {
    (void)ModelFile::from_bytes(example_container().to_bytes(), "c");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), "c");
    EXPECT_NE(std::string(error.what()).find("container"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace dyad
