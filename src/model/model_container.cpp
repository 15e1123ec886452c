#include "model/model_container.h"

#include <cstdint>

#include <dyad/data_error.h>
#include <dyad/version.h>
#include <fmt/format.h>

#include "model/safetensors.h"

namespace dyad {
namespace {

constexpr const char* container_format = "dyad-container";
constexpr const char* container_version = "1";

}  // namespace

std::string ModelContainer::to_bytes() const {
  Safetensors file;
  file.metadata["format"] = container_format;
  file.metadata["format_version"] = container_version;
  file.metadata["written_by"] = std::string("dyad ") + DYAD_VERSION;
  for (const auto& [name, value] : annotations) file.metadata[annotation_prefix + name] = value;
  for (const auto& [name, bytes] : parts)
    file.tensors[name] = {dtype_of<std::uint8_t>(), {static_cast<Index>(bytes.size())}, bytes};
  return file.to_bytes();
}

ModelContainer ModelContainer::from_bytes(const std::string& bytes, const std::string& file) {
  Safetensors content = Safetensors::from_bytes(bytes, file);
  const auto metadata = [&](const char* name) {
    const auto found = content.metadata.find(name);
    return found == content.metadata.end() ? std::string() : found->second;
  };
  ModelContainer result;
  result.annotations = metadata_with_prefix(content, annotation_prefix);
  if (metadata("format") != container_format) {
    result.parts["0"] = bytes;
    return result;
  }
  if (metadata("format_version") != container_version)
    throw DataError(
        file, 0, 0,
        fmt::format("the container has the format version \"{}\"; dyad {} reads version {}: install a newer "
                    "dyad",
                    metadata("format_version"), DYAD_VERSION, container_version));
  for (auto& [name, tensor] : content.tensors) {
    if (tensor.dtype != dtype_of<std::uint8_t>())
      throw DataError(file, 0, 0, fmt::format("the container is damaged: its part '{}' has the wrong type", name));
    result.parts[name] = std::move(tensor.bytes);
  }
  return result;
}

}  // namespace dyad
