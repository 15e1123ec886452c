#include "serialization/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <dyad/data_error.h>

#include "serialization/bounded_json.h"
#include "serialization/json_text.h"

namespace dyad {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "arrays are written as they stand in memory");

constexpr std::size_t length_bytes = 8;
constexpr const char* metadata_key = "__metadata__";

constexpr std::array<std::pair<std::string_view, std::size_t>, 5> dtypes{
    {{"F64", 8}, {"F32", 4}, {"I64", 8}, {"I32", 4}, {"U8", 1}}};

std::size_t size_of(const std::string& dtype) {
  const auto found =
      std::find_if(dtypes.begin(), dtypes.end(), [&](const auto& known) { return known.first == dtype; });
  return found == dtypes.end() ? 0 : found->second;
}

/// Checks one entry of the header against the bytes behind it.
class Checker {
 public:
  Checker(const std::string& file, std::string_view data) : file_(file), data_(data) {}

  Tensor tensor(const std::string& name, const json& entry) {
    require(entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() && entry.contains("shape") &&
                entry["shape"].is_array() && entry.contains("data_offsets") && entry["data_offsets"].is_array() &&
                entry["data_offsets"].size() == 2,
            name + " has no dtype, shape and data_offsets");
    Tensor tensor;
    tensor.dtype = entry["dtype"];
    const std::size_t width = size_of(tensor.dtype);
    require(width > 0, name + " has the unknown dtype " + tensor.dtype);
    std::size_t expected = width;
    for (const json& size : entry["shape"]) {
      require(size.is_number_unsigned(), name + " has a shape that is no list of sizes");
      const auto length = size.get<std::size_t>();
      require(length == 0 || expected <= data_.size() / length || expected == 0, name + " is larger than the file");
      expected *= length;
      tensor.shape.push_back(static_cast<Index>(length));
    }
    const json& offsets = entry["data_offsets"];
    require(offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned(),
            name + " has offsets that are no numbers");
    const auto begin = offsets[0].get<std::size_t>();
    const auto end = offsets[1].get<std::size_t>();
    require(begin <= end && end <= data_.size() && end - begin == expected,
            name + " does not lie where the header says; the file is cut off or damaged");
    spans_.emplace_back(begin, end);
    tensor.bytes = data_.substr(begin, expected);
    return tensor;
  }

  /// The arrays must cover the data without gaps and overlaps.
  void finish() {
    std::sort(spans_.begin(), spans_.end());
    std::size_t covered = 0;
    for (const auto& [begin, end] : spans_) {
      require(begin == covered, "the arrays overlap or leave gaps");
      covered = end;
    }
    require(covered == data_.size(), "there are bytes behind the last array");
  }

  void require(bool holds, const std::string& what) const {
    if (!holds) throw DataError(file_, 0, 0, "expected a safetensors file: " + what);
  }

 private:
  const std::string& file_;
  std::string_view data_;
  std::vector<std::pair<std::size_t, std::size_t>> spans_;
};

}  // namespace

std::string Safetensors::to_bytes() const {
  std::vector<std::pair<std::string, JsonText>> header;
  if (!metadata.empty()) header.emplace_back(metadata_key, JsonText::object({metadata.begin(), metadata.end()}));
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t end = offset + tensor.bytes.size();
    header.emplace_back(name, JsonText::object({{"dtype", tensor.dtype},
                                                {"shape", JsonText::array({tensor.shape.begin(), tensor.shape.end()})},
                                                {"data_offsets", JsonText::array({offset, end})}}));
    offset = end;
  }
  std::string text = JsonText::object(header).text();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the numbers are aligned
  std::string bytes(length_bytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, length_bytes);
  bytes += text;
  bytes.reserve(bytes.size() + offset);
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes;
  return bytes;
}

std::string_view Safetensors::header_of(std::string_view bytes) {
  if (bytes.size() < length_bytes) return {};
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), length_bytes);
  return length > bytes.size() - length_bytes ? std::string_view() : bytes.substr(length_bytes, length);
}

Safetensors Safetensors::from_bytes(const std::string& bytes, const std::string& file) {
  const Checker sizes(file, {});
  sizes.require(bytes.size() >= length_bytes, "it is too short");
  const std::string_view text = header_of(bytes);
  sizes.require(!text.empty(), "its header is cut off, or it is something else");
  const JsonDocument document(text);
  const json& header = document.root();
  sizes.require(header.is_object(), "its header is not JSON, or not that of a model");

  Safetensors result;
  Checker checker(file, std::string_view(bytes).substr(length_bytes + text.size()));
  for (const auto& [name, entry] : header.items()) {
    if (name != metadata_key) {
      result.tensors.emplace(name, checker.tensor(name, entry));
      continue;
    }
    checker.require(entry.is_object(), "its metadata is no table");
    for (const auto& [key, value] : entry.items()) {
      checker.require(value.is_string(), "its metadata holds something that is not text");
      result.metadata.emplace(key, value.get<std::string>());
    }
  }
  checker.finish();
  return result;
}

std::map<std::string, std::string> metadata_with_prefix(const Safetensors& file, const std::string& prefix) {
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : file.metadata)
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = value;
  return found;
}

}  // namespace dyad
