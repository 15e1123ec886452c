#include "serialization/safetensors.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "base/random.h"

namespace dyad {
namespace {

Safetensors example_tensors() {
  Safetensors file;
  file.metadata = {{"format", "dyad"}, {"quote", "\"x\"\n\xc3\xa9"}};
  file.tensors["numbers"] = make_tensor<double>({1, 2.5, -3, 4, 5, 6}, {2, 3});
  file.tensors["small"] = make_tensor<float>({0.5F}, {1});
  file.tensors["empty"] = make_tensor<std::int32_t>({}, {0, 7});
  file.tensors["scalar"] = make_tensor<std::int64_t>({-9}, {});
  file.tensors["bytes"] = make_tensor<std::uint8_t>({1, 2, 3}, {3});
  return file;
}

std::string with_header(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

TEST(Safetensors, RoundTripPreservesContent) {
  const Safetensors file = example_tensors();
  const std::string bytes = file.to_bytes();
  const Safetensors restored = Safetensors::from_bytes(bytes, "model");
  EXPECT_EQ(restored.metadata, file.metadata);
  ASSERT_EQ(restored.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_EQ(restored.tensors.at(name).dtype, tensor.dtype);
    EXPECT_EQ(restored.tensors.at(name).shape, tensor.shape);
    EXPECT_EQ(restored.tensors.at(name).bytes, tensor.bytes);
  }
  EXPECT_EQ(tensor_values<double>(restored.tensors.at("numbers")), (std::vector<double>{1, 2.5, -3, 4, 5, 6}));
  EXPECT_EQ(restored.to_bytes(), bytes);
  EXPECT_TRUE(Safetensors::from_bytes(Safetensors{}.to_bytes(), "empty").tensors.empty());
}

TEST(Safetensors, ViewsAreWrittenAsTensors) {
  const Safetensors file = example_tensors();
  Safetensors mixed = file;
  for (const char* name : {"numbers", "bytes"}) {
    const Tensor& tensor = file.tensors.at(name);
    mixed.tensors.erase(name);
    mixed.views[name] = {tensor.dtype, tensor.shape, tensor.bytes};
  }
  const std::string bytes = file.to_bytes();
  EXPECT_EQ(mixed.to_bytes(), bytes);
  std::string parts;
  mixed.write([&](std::string_view part) { parts += part; });
  EXPECT_EQ(parts, bytes);
}

TEST(Safetensors, ViewsOfBytesEqualTensors) {
  const Safetensors file = example_tensors();
  const std::string bytes = file.to_bytes();
  const Safetensors views = Safetensors::view_bytes(bytes, "model");
  EXPECT_EQ(views.metadata, file.metadata);
  EXPECT_TRUE(views.tensors.empty());
  EXPECT_EQ(views.views.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const auto view = views.find(name);
    ASSERT_TRUE(view) << name;
    EXPECT_EQ(view->dtype, tensor.dtype);
    EXPECT_EQ(view->shape, tensor.shape);
    EXPECT_EQ(view->bytes, tensor.bytes);
    EXPECT_EQ(file.find(name)->bytes, tensor.bytes);
  }
  EXPECT_FALSE(views.find("unknown"));
  EXPECT_EQ(views.to_bytes(), bytes);
}

TEST(Safetensors, TensorDataIsAligned) {
  const std::string bytes = example_tensors().to_bytes();
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0);
}

TEST(Safetensors, TruncatedBytesAreRejected) {
  const std::string bytes = example_tensors().to_bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(Safetensors::from_bytes(bytes.substr(0, length), "model"), DataError) << length;
  EXPECT_THROW(Safetensors::from_bytes(bytes + "x", "model"), DataError);
}

TEST(Safetensors, InvalidFilesAreRejected) {
  const auto expect_rejected = [](const std::string& bytes) {
    EXPECT_THROW(Safetensors::from_bytes(bytes, "model"), DataError) << bytes;
  };
  expect_rejected("y,x\n1,2\n3,4\n");
  expect_rejected(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  expect_rejected(with_header("[]"));
  expect_rejected(with_header("{\"a\":1}"));
  expect_rejected(with_header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0]}}", std::string(8, 'x')));
  expect_rejected(with_header("{\"a\":{\"dtype\":\"F65\",\"shape\":[1],\"data_offsets\":[0,8]}}", std::string(8, 'x')));
  expect_rejected(with_header("{\"a\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,8]}}", std::string(8, 'x')));
  expect_rejected(
      with_header("{\"a\":{\"dtype\":\"F64\",\"shape\":[-1],\"data_offsets\":[0,8]}}", std::string(8, 'x')));
  expect_rejected(
      with_header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]}}", std::string(16, 'x')));
  expect_rejected(
      with_header("{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                  "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
                  std::string(8, 'x')));
  expect_rejected(with_header("{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}"));
  expect_rejected(with_header("{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693953,8],\"data_offsets\":[0,64]}}",
                              std::string(64, 'x')));
  expect_rejected(with_header("{\"__metadata__\":{\"a\":1}}"));
}

TEST(Safetensors, DamagedBytesDoNotCrash) {
  const std::string bytes = example_tensors().to_bytes();
  Random random(1, 0);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string changed = bytes;
    for (int change = 0; change < 3; ++change)
      changed[random.bits() % changed.size()] = static_cast<char>(random.bits());
    try {
      (void)Safetensors::from_bytes(changed, "model");
    } catch (const DataError&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace dyad
