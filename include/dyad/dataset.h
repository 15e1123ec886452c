#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <dyad/types.h>

/// \file
/// Sources of rows: files, standard input and arrays in memory, with the roles of their columns.

namespace dyad {

/// Pointer to an array of real numbers.
using RealPointer = std::variant<const double*, const float*>;
/// Pointer to an array of integers.
using IntegerPointer = std::variant<const std::int64_t*, const std::int32_t*>;

/// View of a dense matrix with real columns (`Layout::matrix`). Does not own the array.
struct MatrixView {
  Index columns = 0;        ///< number of columns
  RealPointer values;       ///< first element
  Index row_stride = 0;     ///< distance between rows, in elements
  Index column_stride = 1;  ///< distance between columns, in elements
};

/// View of a matrix in compressed sparse rows (`Layout::sparse`). Does not own the arrays.
struct SparseView {
  Index columns = 0;       ///< number of columns; all indices are less than it
  IntegerPointer offsets;  ///< position of the first entry of each row, then the number of all entries
  IntegerPointer indices;  ///< column of each entry, strictly increasing within a row
  RealPointer values;      ///< value of each entry
};

/// View of one column of a table (`Layout::table`). Owns the names, not the arrays `numbers` and `codes`.
struct ColumnView {
  std::string name{};                     ///< name, by which the columns of a model are matched
  bool is_categorical = false;            ///< selects `codes` instead of `numbers`
  RealPointer numbers{};                  ///< numeric columns; NaN: missing
  Index stride = 1;                       ///< distance between consecutive `numbers`, in elements
  const std::int32_t* codes = nullptr;    ///< categorical columns: positions in `categories`; negative: missing
  std::vector<std::string> categories{};  ///< names of the categories
};

/// View of rows in memory. Does not own the arrays; the caller keeps them alive. Training and prediction give the same
/// results as for a file with the same values. Rows of weight 0 are skipped.
///
///     dyad::DatasetView data;
///     data.count = 1000;
///     data.features = dyad::MatrixView{.columns = 20, .values = x.data(), .row_stride = 20};
///     data.targets = y;
struct DatasetView {
  Index count = 0;                                                         ///< number of rows
  std::variant<MatrixView, SparseView, std::vector<ColumnView>> features;  ///< one of the three layouts
  std::span<const double> targets;  ///< one per row, or empty; classes: index of the label
  std::span<const double> weights;  ///< one per row, or empty: every row has weight 1
  std::vector<std::string> labels;  ///< names of the classes 0, 1, ...; empty: regression
};

/// Bounds on one row of a file. A row that exceeds them is rejected with a DataError before it is stored in memory.
struct ReadLimits {
  /// Largest number of columns of csv, tsv and npy files. Training uses about 9.5 kB for each column of a csv file at
  /// rank 8 (measured with 10,000 to 100,000 columns), hence 2.5 GB for 2^18 columns.
  Index max_columns = Index{1} << 18;
  /// Largest number of bytes of a line of text, or of a csv row whose quoted cells contain newlines. The default allows
  /// 256 bytes for each of `max_columns` cells, ten times a number of 17 digits with sign, point and exponent.
  Index max_line_bytes = Index{1} << 26;

  /// Throws std::invalid_argument if a limit is not positive or exceeds the range of 32-bit indices.
  void validate() const;
};

/// Source of rows: a list of files that are read in order as one stream in constant memory, or a view of rows in
/// memory.
struct DataOptions {
  std::vector<std::string> paths{};  ///< "-": standard input. gzip and zstd compression is detected by magic number.
  std::optional<Format> format{};    ///< default: from the extensions .svm .libsvm .csv .tsv .npy, also with .gz .zst
  std::vector<std::string> target_paths{};  ///< npy: one array of targets for each file
  const DatasetView* dataset = nullptr;     ///< used instead of files unless null; not owned
  ReadLimits limits{};                      ///< applied to each file

  /// Name of the source in messages.
  [[nodiscard]] std::string name() const { return dataset != nullptr ? "the rows" : paths.front(); }

  /// Returns the common format of all files; rows in memory: the file format with the same layout.
  /// \throws std::invalid_argument if files and rows in memory are both absent or both present, if standard input is
  ///         given twice, or if the extensions do not determine one format
  [[nodiscard]] Format resolve_format() const;
};

/// Roles of the columns. Columns of libsvm and npy files are named by their index.
struct ColumnOptions {
  std::string target;                    ///< csv and tsv: name of the target
  std::string weight;                    ///< csv and tsv: name of the column of row weights; empty: all weights are 1
  std::vector<std::string> categorical;  ///< csv and tsv: columns that are categorical although they contain numbers
  std::vector<std::string> ignored;      ///< csv and tsv: columns that are not used
  std::vector<std::string> right;        ///< bilinear: columns of z; libsvm and npy: ranges FIRST-LAST or FIRST-
  std::optional<Task> task;              ///< default: classification if the targets are texts, 0 and 1, or -1 and +1
  Index index_base = 0;  ///< libsvm: smallest valid index. 0 accepts one-based files too; 1 rejects the index 0.
  /// libsvm: file with the prior group of each index, one name or number per line; the first line is the group of the
  /// index `index_base`. Empty: all features are in one group.
  std::string groups_path;
  int hash_bits = 0;  ///< > 0: categories (libsvm: indices) are hashed to 2^hash_bits features
};

/// Column of a table as read from a file.
struct RawColumn {
  std::string name{};                     ///< from the header
  bool is_categorical = false;            ///< selects `codes` instead of `numbers`
  std::vector<double> numbers{};          ///< numeric columns; NaN: missing
  std::vector<std::int32_t> codes{};      ///< categorical columns: positions in `categories`; -1: missing
  std::vector<std::string> categories{};  ///< names of the categories
};

/// Block of rows as read from a file, neither scaled nor encoded.
struct RawRows {
  Index count = 0;                      ///< number of rows
  std::vector<RawColumn> columns{};     ///< csv and tsv: all columns, including the target
  Index width = 0;                      ///< npy: number of columns; libsvm: largest index + 1
  std::vector<Index> offsets{};         ///< libsvm: position of each row's first entry, then the number of entries
  std::vector<std::int32_t> indices{};  ///< libsvm: index of each entry
  std::vector<double> values{};         ///< libsvm: value of each entry; npy: row-major values
  std::vector<double> targets{};        ///< libsvm, and npy if target files are given
};

/// Reader of the rows of files without encoding, one block at a time, in constant memory. The first block determines
/// the type of each csv or tsv column: numeric if at least half of its cells that are not missing are numbers and
/// `categorical` does not contain its name, else categorical.
class RawReader {
 public:
  /// \param data            files to read
  /// \param categorical     names of columns that are categorical although they contain numbers
  /// \param rows_per_block  largest number of rows of one block
  /// \throws DataError for invalid content, std::runtime_error if a file cannot be read
  RawReader(const DataOptions& data, std::vector<std::string> categorical, Index rows_per_block);
  ~RawReader();
  RawReader(RawReader&&) noexcept;             ///< moves the reader
  RawReader& operator=(RawReader&&) noexcept;  ///< moves the reader

  /// Reads the next block.
  /// \param rows         replaced by the block
  /// \param interrupted  polled while reading and waiting; if it returns true, next() throws std::runtime_error and
  ///                     the reader cannot be used any more
  /// \return false at the end of the data
  /// \throws DataError for invalid content, std::runtime_error if a file cannot be read
  bool next(RawRows& rows, const std::function<bool()>& interrupted = {});

  struct Source;

 private:
  std::unique_ptr<Source> source_;
};

}  // namespace dyad
