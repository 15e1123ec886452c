#pragma once

#include <map>
#include <string>
#include <vector>

namespace dyad {

/// Content of the file of a model of more than two classes: a ModelContainer with one model file per class, each of one
/// class against all others. With the log-odds f_c of the models, the probabilities are the softmax of t f_c.
struct ClassModels {
  std::string target;                              ///< name of the target; empty for layouts without column names
  std::vector<std::string> labels;                 ///< in the order of the parts
  double temperature = 1;                          ///< t
  double precision = 0;                            ///< of t: inverse variance of its posterior
  std::vector<std::string> parts;                  ///< bytes of the model files
  std::string checksum;                            ///< of the file that was read
  std::map<std::string, std::string> annotations;  ///< as ModelFile::annotations

  /// Type of the labels: "integer" or "number" if all labels are numbers with the fewest digits, else "text".
  [[nodiscard]] std::string label_type() const;

  [[nodiscard]] std::string to_bytes() const;
  /// Throws DataError that names `file` if the bytes are not the file of a model of more than two classes.
  static ClassModels from_bytes(const std::string& bytes, const std::string& file);
  /// Whether the bytes are a container with the entry `classes`. Reads the header only.
  static bool is_class_file(const std::string& bytes);
};

}  // namespace dyad
