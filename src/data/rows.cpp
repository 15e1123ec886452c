#include <dyad/rows.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace dyad {
namespace {

void require(bool holds, const std::string& sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

void require_targets(std::size_t targets, Index count) {
  require(targets == 0 || static_cast<Index>(targets) == count, "rows need one target each or none: got " +
                                                                    std::to_string(targets) + " targets for " +
                                                                    std::to_string(count) + " rows");
}

template <typename Offset>
void require_compressed(std::span<const Offset> offsets, std::span<const std::int32_t> columns, std::size_t values,
                        Index dim) {
  require(dim >= 1 && dim <= std::numeric_limits<std::int32_t>::max(),
          "dim must lie in [1, 2^31), got " + std::to_string(dim));
  require(!offsets.empty() && offsets.front() == 0, "sparse rows need offsets that begin with 0");
  require(offsets.back() == static_cast<Index>(values) && columns.size() == values,
          "sparse rows need as many columns and values as the last offset says");
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i - 1] > offsets[i])
      throw std::invalid_argument("offsets must not fall: row " + std::to_string(i - 1) + " ends before it begins");
  for (std::size_t i = 1; i < offsets.size(); ++i)
    for (Index e = offsets[i - 1]; e < offsets[i]; ++e) {
      const std::int32_t column = columns[static_cast<std::size_t>(e)];
      if (column < 0 || column >= dim)
        throw std::invalid_argument("column " + std::to_string(column) + " lies outside [0, " + std::to_string(dim) +
                                    ")");
      if (e > offsets[i - 1] && column <= columns[static_cast<std::size_t>(e) - 1])
        throw std::invalid_argument("the columns of row " + std::to_string(i - 1) + " must rise and not repeat");
    }
}

}  // namespace

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::dense(std::span<const Scalar> values, Index dim, std::span<const Scalar> targets) {
  require(dim >= 1, "dim must be at least 1, got " + std::to_string(dim));
  const auto size = static_cast<Index>(values.size());
  require(size % dim == 0,
          "dense rows need a multiple of dim = " + std::to_string(dim) + " values, got " + std::to_string(size));
  Rows rows;
  rows.count_ = size / dim;
  rows.dim_ = dim;
  rows.stride_ = dim;
  rows.values_ = values.data();
  require_targets(targets.size(), rows.count_);
  rows.targets_ = targets.empty() ? nullptr : targets.data();
  return rows;
}

template <typename Scalar>
template <typename Offset>
Rows<Scalar> Rows<Scalar>::sparse_unchecked(std::span<const Offset> offsets, std::span<const std::int32_t> columns,
                                            std::span<const Scalar> values, Index dim,
                                            std::span<const Scalar> targets) {
  Rows rows;
  rows.count_ = static_cast<Index>(offsets.size()) - 1;
  rows.dim_ = dim;
  rows.values_ = values.data();
  rows.columns_ = columns.data();
  rows.targets_ = targets.empty() ? nullptr : targets.data();
  if constexpr (std::is_same_v<Offset, Index>)
    rows.offsets_ = offsets.data();
  else
    rows.short_offsets_ = offsets.data();
  return rows;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::sparse(std::span<const Index> offsets, std::span<const std::int32_t> columns,
                                  std::span<const Scalar> values, Index dim, std::span<const Scalar> targets) {
  require_compressed(offsets, columns, values.size(), dim);
  require_targets(targets.size(), static_cast<Index>(offsets.size()) - 1);
  return sparse_unchecked(offsets, columns, values, dim, targets);
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::sparse(std::span<const std::int32_t> offsets, std::span<const std::int32_t> columns,
                                  std::span<const Scalar> values, Index dim, std::span<const Scalar> targets) {
  require_compressed(offsets, columns, values.size(), dim);
  require_targets(targets.size(), static_cast<Index>(offsets.size()) - 1);
  return sparse_unchecked(offsets, columns, values, dim, targets);
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::weighted(std::span<const Scalar> weights) const {
  require(static_cast<Index>(weights.size()) == count_, "rows need one weight each: got " +
                                                            std::to_string(weights.size()) + " weights for " +
                                                            std::to_string(count_) + " rows");
  for (const Scalar weight : weights)
    if (!(weight >= 0 && std::isfinite(weight)))
      throw std::invalid_argument("the weight of a row must be finite and not negative, got " + std::to_string(weight));
  Rows rows = *this;
  rows.weights_ = weights.data();
  return rows;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::only(std::span<const std::uint8_t> marks, std::uint8_t mark) const {
  Rows rows = without(marks, mark);
  rows.marked_count_ = true;
  return rows;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::without(std::span<const std::uint8_t> marks, std::uint8_t mark) const {
  require(static_cast<Index>(marks.size()) == count_, "rows need one mark each: got " + std::to_string(marks.size()) +
                                                          " marks for " + std::to_string(count_) + " rows");
  Rows rows = *this;
  rows.marks_ = marks.data();
  rows.mark_ = mark;
  rows.marked_count_ = false;
  return rows;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::slice(Index first, Index count) const {
  require(first >= 0 && count >= 0 && first + count <= count_,
          "a slice must lie inside its " + std::to_string(count_) + " rows");
  Rows part = *this;
  part.count_ = count;
  if (offsets_ != nullptr)
    part.offsets_ += first;
  else if (short_offsets_ != nullptr)
    part.short_offsets_ += first;
  else
    part.values_ += first * stride_;
  if (has_targets()) part.targets_ += first;
  if (weights_ != nullptr) part.weights_ += first;
  if (marks_ != nullptr) part.marks_ += first;
  return part;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::window(Index first, Index count) const {
  require(first >= 0 && count >= 1 && first + count <= dim_,
          "a window must lie inside the " + std::to_string(dim_) + " features");
  Rows part = *this;
  part.dim_ = count;
  if (is_sparse())
    part.first_column_ += first;
  else
    part.values_ += first;
  return part;
}

template class Rows<float>;
template class Rows<double>;

#define DYAD_INSTANTIATE(Scalar, Offset)                                                                       \
  template Rows<Scalar> Rows<Scalar>::sparse_unchecked(std::span<const Offset>, std::span<const std::int32_t>, \
                                                       std::span<const Scalar>, Index, std::span<const Scalar>)
DYAD_INSTANTIATE(float, Index);
DYAD_INSTANTIATE(float, std::int32_t);
DYAD_INSTANTIATE(double, Index);
DYAD_INSTANTIATE(double, std::int32_t);
#undef DYAD_INSTANTIATE

}  // namespace dyad
