#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dyad/data.h>
#include <dyad/rows.h>

namespace dyad {

/// A column of a table: numbers (NaN: missing), or categories by their place in a list (-1: missing).
struct RawColumn {
  std::string name{};
  bool is_category = false;
  std::vector<double> numbers{};
  std::vector<std::int32_t> codes{};
  std::vector<std::string> categories{};
};

/// Rows as they stand in files, before anything is scaled or turned into features.
struct RawRows {
  Index count = 0;
  std::vector<RawColumn> columns{};     ///< csv and tsv: all of them, the target too
  Index width = 0;                      ///< npy: columns; libsvm: one more than the largest index
  std::vector<Index> offsets{};         ///< libsvm: of each row's entries
  std::vector<std::int32_t> indices{};  ///< libsvm
  std::vector<double> values{};         ///< libsvm, and npy row by row
  std::vector<double> targets{};        ///< libsvm, and npy where target files are given
};

/// Reads what training reads, a block at a time, in memory that does not grow with the files. What a column of text
/// holds is decided by the first block: numbers, unless most cells are none or `categorical` says so.
class RawReader {
 public:
  /// Throws as training does, here and in next().
  RawReader(const DataOptions& data, std::vector<std::string> categorical, Index rows_per_block);
  ~RawReader();
  RawReader(RawReader&&) noexcept;
  RawReader& operator=(RawReader&&) noexcept;

  /// False at the end. `interrupted` is polled while reading and waiting; once it returns true, next() throws
  /// std::runtime_error, and the reader cannot be used any more.
  bool next(RawRows& rows, const std::function<bool()>& interrupted = {});

  struct Source;

 private:
  std::unique_ptr<Source> source_;
};

}  // namespace dyad
