#pragma once

#include <map>
#include <string>
#include <vector>

namespace dyad {

/// File that contains several complete files, for example the binary models of a multi-class classifier. The layout is
/// safetensors: the files are U8 tensors named part.0, part.1, ..., and the metadata entries are `format`
/// ("dyad-container"), `format_version`, `checksum` (serialization/checksum.h), `written_by`, `annotation.*` and, for
/// models of more than two classes, `classes`.
struct ModelContainer {
  static constexpr const char* format = "dyad-container";

  std::map<std::string, std::string> annotations;  ///< free-form text of the program that wrote the file
  std::vector<std::string> parts;                  ///< bytes of each contained file
  std::string checksum;                            ///< of the file that was read; empty: none
  std::string classes;  ///< JSON text of a model of more than two classes (ClassModels); empty: other content

  [[nodiscard]] std::string to_bytes() const;

  /// A plain model file is read as a container with one part, the file itself, and with its annotations. Does not parse
  /// the parts. Throws DataError that names `file` if the bytes are not a safetensors file, the checksum does not
  /// match, or the container has another version.
  static ModelContainer from_bytes(const std::string& bytes, const std::string& file);
};

}  // namespace dyad
