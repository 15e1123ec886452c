#include <bit>
#include <stdexcept>

#include <dyad/parts.h>

namespace dyad {
namespace {

/// Entries in any order, zeros left out: a dense row and the same one as a sparse row are the same.
class RowHash {
 public:
  void add(std::uint64_t place, double value) {
    if (value != 0) sum_ += mixed(mixed(place + 1) ^ std::bit_cast<std::uint64_t>(value));
  }
  [[nodiscard]] std::uint64_t value() const { return mixed(sum_); }

 private:
  /// Spreads every bit (splitmix64).
  static std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  std::uint64_t sum_ = 0;
};

constexpr std::uint64_t target_place = ~std::uint64_t{1};

void add_entries(const MemoryMatrix& matrix, Index i, RowHash& hash) {
  std::visit(
      [&](const auto* values) {
        for (Index j = 0; j < matrix.columns; ++j)
          hash.add(static_cast<std::uint64_t>(j),
                   static_cast<double>(values[i * matrix.row_stride + j * matrix.column_stride]));
      },
      matrix.values);
}

void add_entries(const MemorySparse& sparse, Index i, RowHash& hash) {
  std::visit(
      [&](const auto* offsets, const auto* indices, const auto* values) {
        for (auto e = static_cast<Index>(offsets[i]); e < static_cast<Index>(offsets[i + 1]); ++e)
          hash.add(static_cast<std::uint64_t>(indices[e]), static_cast<double>(values[e]));
      },
      sparse.offsets, sparse.indices, sparse.values);
}

void add_entries(const std::vector<MemoryColumn>&, Index, RowHash&) {
  throw std::invalid_argument("rows in parts must be arrays of numbers or sparse rows, not tables");
}

}  // namespace

std::vector<std::uint64_t> row_hashes(const MemoryRows& rows) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(rows.count));
  std::visit(
      [&](const auto& features) {
        for (Index i = 0; i < rows.count; ++i) {
          RowHash hash;
          add_entries(features, i, hash);
          if (!rows.targets.empty()) hash.add(target_place, rows.targets[static_cast<std::size_t>(i)]);
          hashes[static_cast<std::size_t>(i)] = hash.value();
        }
      },
      rows.features);
  return hashes;
}

}  // namespace dyad
