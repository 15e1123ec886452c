#include "serialization/model_container.h"

#include <cstdint>

#include <dyad/error.h>
#include <dyad/version.h>
#include <fmt/format.h>

#include "serialization/checksum.h"
#include "serialization/safetensors.h"

namespace dyad {
namespace {

constexpr const char* container_version = "1";

std::string part_name(std::size_t index) { return "part." + std::to_string(index); }

}  // namespace

std::string ModelContainer::to_bytes() const {
  Safetensors file;
  file.metadata["format"] = format;
  file.metadata["format_version"] = container_version;
  file.metadata["written_by"] = std::string("dyad ") + DYAD_VERSION;
  if (!classes.empty()) file.metadata["classes"] = classes;
  for (const auto& [name, value] : annotations) file.metadata[annotation_prefix + name] = value;
  for (std::size_t i = 0; i < parts.size(); ++i)
    file.views[part_name(i)] = {dtype_of<std::uint8_t>(), {static_cast<Index>(parts[i].size())}, parts[i]};
  set_checksum(file);
  return file.to_bytes();
}

ModelContainer ModelContainer::from_bytes(const std::string& bytes, const std::string& file) {
  Safetensors content = Safetensors::from_bytes(bytes, file);
  const auto metadata = [&](const char* name) {
    const auto found = content.metadata.find(name);
    return found == content.metadata.end() ? std::string() : found->second;
  };
  const bool is_container = metadata("format") == format;
  // Model files of version 1 have no checksum. ModelFile::from_bytes() rejects newer ones without a checksum.
  if ((is_container || content.metadata.contains(checksum_key)) && !has_valid_checksum(bytes))
    throw DataError(file, 0, 0, "the file is damaged: its checksum does not match its content; use a backup copy");
  ModelContainer result;
  result.annotations = metadata_with_prefix(content, annotation_prefix);
  result.checksum = metadata(checksum_key);
  if (!is_container) {
    result.parts = {bytes};
    return result;
  }
  if (metadata("format_version") != container_version)
    throw DataError(
        file, 0, 0,
        fmt::format("the container has the format version \"{}\"; dyad {} reads version {}; install a newer "
                    "dyad",
                    metadata("format_version"), DYAD_VERSION, container_version));
  result.classes = metadata("classes");
  for (std::size_t i = 0; i < content.tensors.size(); ++i) {
    const auto part = content.tensors.find(part_name(i));
    if (part == content.tensors.end() || part->second.dtype != dtype_of<std::uint8_t>())
      throw DataError(
          file, 0, 0,
          fmt::format("the container is damaged: the tensor '{}' is missing or is not U8; use a backup copy",
                      part_name(i)));
    result.parts.push_back(std::move(part->second.bytes));
  }
  return result;
}

}  // namespace dyad
