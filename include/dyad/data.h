#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dyad/planted.h>

namespace dyad {

struct MemoryRows;

/// What a model stores about its input: tables match by the names of columns, matrices by position, sparse rows by
/// index. File formats are encodings of these: csv and tsv of tables, npy of matrices, libsvm of sparse rows.
enum class Layout { table, matrix, sparse };
Layout layout_of(Format format);

/// Bounds on one row of a file. A row that exceeds them is refused with a DataError before it is held in memory.
struct ReadLimits {
  /// csv, tsv and npy. Training takes about 9.5 kB for each column of a csv at rank 8 (measured with 10,000 to 100,000
  /// columns), so that 2^18 columns need 2.5 GB.
  Index max_columns = Index{1} << 18;
  /// Text: bytes of a line, or of a csv row whose quoted cells contain newlines. The default allows 256 bytes for each
  /// of `max_columns` cells, ten times a number of 17 digits with sign, point and exponent.
  Index max_line_bytes = Index{1} << 26;

  /// Throws std::invalid_argument if a limit is not positive, or exceeds what indices of 32 bits can address.
  void validate() const;
};

/// Files of rows, read one after the other as one stream, in constant memory; or rows in memory.
struct DataOptions {
  std::vector<std::string> paths{};         ///< "-": standard input; gzip and zstd are unpacked
  std::optional<Format> format{};           ///< unless given, from the names: .svm .libsvm .csv .tsv .npy [.gz .zst]
  std::vector<std::string> target_paths{};  ///< npy: one array of targets for each of the files
  const MemoryRows* memory = nullptr;       ///< instead of files
  ReadLimits limits{};                      ///< of each file

  /// For messages.
  [[nodiscard]] std::string name() const { return memory != nullptr ? "the rows" : paths.front(); }

  /// The one format of all files. Throws std::invalid_argument where it cannot be told.
  [[nodiscard]] Format format_of_all() const;
};

enum class Task { regression, classification };
/// As in options and model files.
inline constexpr std::array task_names{std::pair{"regression", Task::regression},
                                       std::pair{"classification", Task::classification}};
enum class Precision { single_precision, double_precision };

/// What the columns of the files are to the model. The names of libsvm and npy columns are their numbers.
struct ColumnOptions {
  std::string target;                    ///< csv and tsv
  std::string weight;                    ///< csv and tsv: how often a row counts; empty: once
  std::vector<std::string> categorical;  ///< csv and tsv: names even where they look like numbers
  std::vector<std::string> ignored;      ///< csv and tsv
  std::vector<std::string> right;        ///< bilinear: the columns of z; libsvm and npy: FIRST-LAST or FIRST-
  std::optional<Task> task;              ///< unless given, told by the targets
  Index index_base = 0;  ///< libsvm: the smallest index; 0 serves one-based files, too, 1 refuses an index 0
  int hash_bits = 0;     ///< above 0: categories (libsvm: indices) share 2^bits features and are not remembered
};

}  // namespace dyad
