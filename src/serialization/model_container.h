#pragma once

#include <map>
#include <string>
#include <vector>

namespace dyad {

/// Several complete files in one file, for example the binary models of a classifier with several classes. The layout
/// is safetensors: the parts are U8 tensors named part.0, part.1, ..., and the metadata are `format`
/// ("dyad-container"), `format_version`, `checksum` (model/checksum.h), `written_by` and `annotation.*`.
struct ModelContainer {
  static constexpr const char* format = "dyad-container";

  std::map<std::string, std::string> annotations;  ///< free-form text of the program that wrote the container
  std::vector<std::string> parts;                  ///< bytes of each file

  [[nodiscard]] std::string to_bytes() const;

  /// A model file is read as a container with the annotations of the file and the file itself as its only part.
  /// Throws DataError, naming `file`, if the bytes are not a safetensors file, or a container of a newer version. The
  /// parts are not read.
  static ModelContainer from_bytes(const std::string& bytes, const std::string& file);
};

}  // namespace dyad
