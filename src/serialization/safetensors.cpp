#include "serialization/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include <dyad/error.h>

#include "serialization/bounded_json.h"
#include "serialization/json_text.h"

namespace dyad {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "tensors are copied from memory, and the format is little-endian");

/// Size of the length field in front of the header; a property of the format.
constexpr std::size_t length_bytes = 8;
/// The header is padded with spaces to a multiple of this, so that the tensor data starts at such a multiple.
constexpr std::size_t header_alignment_bytes = 8;
constexpr const char* metadata_key = "__metadata__";

/// Supported dtypes and the size of their elements in bytes.
constexpr std::array<std::pair<std::string_view, std::size_t>, 5> dtypes{
    {{"F64", 8}, {"F32", 4}, {"I64", 8}, {"I32", 4}, {"U8", 1}}};

/// 0 if the dtype is not supported.
std::size_t element_bytes(const std::string& dtype) {
  const auto found =
      std::find_if(dtypes.begin(), dtypes.end(), [&](const auto& known) { return known.first == dtype; });
  return found == dtypes.end() ? 0 : found->second;
}

void require_valid(const std::string& file, bool condition, const std::string& error) {
  if (!condition) throw DataError(file, 0, 0, "expected a safetensors file: " + error);
}

/// Reads the tensors that the header describes and validates every entry against the size of the data. Does not own the
/// file name and the data; the caller keeps them alive.
class TensorParser {
 public:
  TensorParser(const std::string& file, std::string_view data) : file_(file), data_(data) {}

  TensorView parse(const std::string& name, const json& entry) {
    require_valid(file_,
                  entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
                      entry.contains("shape") && entry["shape"].is_array() && entry.contains("data_offsets") &&
                      entry["data_offsets"].is_array() && entry["data_offsets"].size() == 2,
                  "the tensor '" + name + "' needs the fields dtype, shape and data_offsets");
    TensorView tensor;
    tensor.dtype = entry["dtype"];
    const std::size_t element_size = element_bytes(tensor.dtype);
    require_valid(file_, element_size > 0,
                  "the tensor '" + name + "' has the unsupported dtype '" + tensor.dtype + "'");
    std::size_t byte_count = element_size;
    for (const json& size : entry["shape"]) {
      require_valid(file_, size.is_number_unsigned(), "the shape of the tensor '" + name + "' is not a list of sizes");
      const auto length = size.get<std::size_t>();
      require_valid(file_, length == 0 || byte_count <= data_.size() / length || byte_count == 0,
                    "the tensor '" + name + "' is larger than the file");
      byte_count *= length;
      tensor.shape.push_back(static_cast<Index>(length));
    }
    const json& offsets = entry["data_offsets"];
    require_valid(file_, offsets[0].is_number_unsigned() && offsets[1].is_number_unsigned(),
                  "the data_offsets of the tensor '" + name + "' are not two sizes");
    const auto begin = offsets[0].get<std::size_t>();
    const auto end = offsets[1].get<std::size_t>();
    require_valid(file_, begin <= end && end <= data_.size() && end - begin == byte_count,
                  "the data_offsets of the tensor '" + name +
                      "' do not match its shape and the file; the file is cut off or damaged");
    byte_ranges_.emplace_back(begin, end);
    tensor.bytes = data_.substr(begin, byte_count);
    return tensor;
  }

  /// The tensors must cover the data without gaps and overlaps.
  void require_full_coverage() {
    std::sort(byte_ranges_.begin(), byte_ranges_.end());
    std::size_t covered = 0;
    for (const auto& [begin, end] : byte_ranges_) {
      require_valid(file_, begin == covered, "the tensors overlap or leave gaps");
      covered = end;
    }
    require_valid(file_, covered == data_.size(), "there are bytes after the last tensor");
  }

 private:
  const std::string& file_;
  std::string_view data_;
  std::vector<std::pair<std::size_t, std::size_t>> byte_ranges_;  ///< [begin, end) of the tensors parsed so far
};

}  // namespace

void Safetensors::write(const std::function<void(std::string_view)>& sink) const {
  std::map<std::string, TensorView> all = views;
  for (const auto& [name, tensor] : tensors) all[name] = {tensor.dtype, tensor.shape, tensor.bytes};
  std::vector<std::pair<std::string, JsonText>> header;
  if (!metadata.empty()) header.emplace_back(metadata_key, JsonText::object({metadata.begin(), metadata.end()}));
  std::size_t offset = 0;
  for (const auto& [name, tensor] : all) {
    const std::size_t end = offset + tensor.bytes.size();
    header.emplace_back(name, JsonText::object({{"dtype", tensor.dtype},
                                                {"shape", JsonText::array({tensor.shape.begin(), tensor.shape.end()})},
                                                {"data_offsets", JsonText::array({offset, end})}}));
    offset = end;
  }
  std::string text = JsonText::object(header).text();
  text.append((header_alignment_bytes - text.size() % header_alignment_bytes) % header_alignment_bytes, ' ');
  std::string beginning(length_bytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(beginning.data(), &length, length_bytes);
  beginning += text;
  sink(beginning);
  for (const auto& [name, tensor] : all) sink(tensor.bytes);
}

std::string Safetensors::to_bytes() const {
  std::size_t tensor_bytes = 0;
  for (const auto& [name, tensor] : tensors) tensor_bytes += tensor.bytes.size();
  for (const auto& [name, tensor] : views) tensor_bytes += tensor.bytes.size();
  std::string bytes;
  write([&](std::string_view part) {
    if (bytes.empty()) bytes.reserve(part.size() + tensor_bytes);  // the first part is the header
    bytes += part;
  });
  return bytes;
}

std::string_view Safetensors::header_of(std::string_view bytes) {
  if (bytes.size() < length_bytes) return {};
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), length_bytes);
  return length > bytes.size() - length_bytes ? std::string_view() : bytes.substr(length_bytes, length);
}

Safetensors Safetensors::view_bytes(std::string_view bytes, const std::string& file) {
  require_valid(file, bytes.size() >= length_bytes, "the file is shorter than 8 bytes");
  const std::string_view text = header_of(bytes);
  require_valid(file, !text.empty(), "its header is cut off, or the file has another format");
  const JsonDocument document(text);
  const json& header = document.root();
  require_valid(file, header.is_object(), "its header is not a JSON object, or is nested too deeply or too large");

  Safetensors result;
  TensorParser parser(file, bytes.substr(length_bytes + text.size()));
  for (const auto& [name, entry] : header.items()) {
    if (name != metadata_key) {
      result.views.emplace(name, parser.parse(name, entry));
      continue;
    }
    require_valid(file, entry.is_object(), "'__metadata__' is not an object");
    for (const auto& [key, value] : entry.items()) {
      require_valid(file, value.is_string(), "the metadata entry '" + key + "' is not text");
      result.metadata.emplace(key, value.get<std::string>());
    }
  }
  parser.require_full_coverage();
  return result;
}

Safetensors Safetensors::from_bytes(const std::string& bytes, const std::string& file) {
  Safetensors result = view_bytes(bytes, file);
  for (auto& [name, view] : std::exchange(result.views, {}))
    result.tensors[name] = {std::move(view.dtype), std::move(view.shape), std::string(view.bytes)};
  return result;
}

std::optional<TensorView> Safetensors::find(const std::string& name) const {
  if (const auto view = views.find(name); view != views.end()) return view->second;
  const auto found = tensors.find(name);
  if (found == tensors.end()) return std::nullopt;
  const Tensor& tensor = found->second;
  return TensorView{tensor.dtype, tensor.shape, tensor.bytes};
}

std::map<std::string, std::string> metadata_with_prefix(const Safetensors& file, const std::string& prefix) {
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : file.metadata)
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = value;
  return found;
}

}  // namespace dyad
