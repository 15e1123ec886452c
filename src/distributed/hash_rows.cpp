#include <stdexcept>

#include <dyad/distributed.h>

#include "data/row_hash.h"

namespace dyad {
namespace {

void add_entries(const MatrixView& matrix, Index i, RowHash& hash) {
  std::visit(
      [&](const auto* values) {
        for (Index j = 0; j < matrix.columns; ++j)
          hash.add(static_cast<std::uint64_t>(j),
                   static_cast<double>(values[i * matrix.row_stride + j * matrix.column_stride]));
      },
      matrix.values);
}

void add_entries(const SparseView& sparse, Index i, RowHash& hash) {
  std::visit(
      [&](const auto* offsets, const auto* indices, const auto* values) {
        for (auto e = static_cast<Index>(offsets[i]); e < static_cast<Index>(offsets[i + 1]); ++e)
          hash.add(static_cast<std::uint64_t>(indices[e]), static_cast<double>(values[e]));
      },
      sparse.offsets, sparse.indices, sparse.values);
}

void add_entries(const std::vector<ColumnView>&, Index, RowHash&) {
  throw std::invalid_argument(
      "rows: distributed training needs a matrix or sparse rows, not a table of columns; encode the columns first");
}

}  // namespace

std::vector<std::uint64_t> hash_rows(const DatasetView& rows) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(rows.count));
  std::visit(
      [&](const auto& features) {
        for (Index i = 0; i < rows.count; ++i) {
          RowHash hash;
          add_entries(features, i, hash);
          if (!rows.targets.empty()) hash.add(RowHash::target_column, rows.targets[static_cast<std::size_t>(i)]);
          hashes[static_cast<std::size_t>(i)] = hash.value();
        }
      },
      rows.features);
  return hashes;
}

}  // namespace dyad
