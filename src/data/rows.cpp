#include <dyad/rows.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace dyad {
namespace {

void require(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument(message);
}

void require_targets(std::size_t targets, Index count) {
  require(targets == 0 || static_cast<Index>(targets) == count,
          "targets must be empty or contain one number per row: got " + std::to_string(targets) + " targets for " +
              std::to_string(count) + " rows");
}

/// Throws unless the arrays describe compressed sparse rows with strictly increasing columns in [0, dim).
template <typename Offset>
void require_compressed(std::span<const Offset> offsets, std::span<const std::int32_t> columns, std::size_t values,
                        Index dim) {
  require(dim >= 1 && dim <= std::numeric_limits<std::int32_t>::max(),
          "dim must lie in [1, 2^31), got " + std::to_string(dim));
  require(!offsets.empty() && offsets.front() == 0, "offsets of sparse rows must begin with 0");
  require(offsets.back() == static_cast<Index>(values) && columns.size() == values,
          "columns and values of sparse rows must have the size offsets.back() = " + std::to_string(offsets.back()) +
              ", got " + std::to_string(columns.size()) + " columns and " + std::to_string(values) + " values");
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i - 1] > offsets[i])
      throw std::invalid_argument("offsets must not decrease: row " + std::to_string(i - 1) + " ends before it begins");
  for (std::size_t i = 1; i < offsets.size(); ++i)
    for (Index e = offsets[i - 1]; e < offsets[i]; ++e) {
      const std::int32_t column = columns[static_cast<std::size_t>(e)];
      if (column < 0 || column >= dim)
        throw std::invalid_argument("columns must lie in [0, dim = " + std::to_string(dim) + "): row " +
                                    std::to_string(i - 1) + " has column " + std::to_string(column));
      if (e > offsets[i - 1] && column <= columns[static_cast<std::size_t>(e) - 1])
        throw std::invalid_argument("columns must increase strictly along a row: row " + std::to_string(i - 1) +
                                    " has column " + std::to_string(column) + " after column " +
                                    std::to_string(columns[static_cast<std::size_t>(e) - 1]));
    }
}

}  // namespace

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::dense(std::span<const Scalar> values, Index dim, std::span<const Scalar> targets) {
  require(dim >= 1, "dim must be at least 1, got " + std::to_string(dim));
  const auto size = static_cast<Index>(values.size());
  require(size % dim == 0, "values of dense rows must have a size that is a multiple of dim = " + std::to_string(dim) +
                               ", got " + std::to_string(size));
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
  require(static_cast<Index>(weights.size()) == count_, "weights must contain one number per row: got " +
                                                            std::to_string(weights.size()) + " weights for " +
                                                            std::to_string(count_) + " rows");
  for (const Scalar weight : weights)
    if (!(weight >= 0 && std::isfinite(weight)))
      throw std::invalid_argument("weights must be finite and not negative, got " + std::to_string(weight));
  Rows rows = *this;
  rows.weights_ = weights.data();
  return rows;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::only(std::span<const std::uint8_t> marks, std::uint8_t mark) const {
  Rows rows = without(marks, mark);
  rows.selects_marked_ = true;
  return rows;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::without(std::span<const std::uint8_t> marks, std::uint8_t mark) const {
  require(static_cast<Index>(marks.size()) == count_, "marks must contain one number per row: got " +
                                                          std::to_string(marks.size()) + " marks for " +
                                                          std::to_string(count_) + " rows");
  Rows rows = *this;
  rows.marks_ = marks.data();
  rows.mark_ = mark;
  rows.selects_marked_ = false;
  return rows;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::slice(Index first, Index count) const {
  if (!(first >= 0 && count >= 0 && first + count <= count_))
    throw std::invalid_argument("a slice must lie in the rows [0, " + std::to_string(count_) +
                                "), got first = " + std::to_string(first) + " and count = " + std::to_string(count));
  Rows view = *this;
  view.count_ = count;
  if (offsets_ != nullptr)
    view.offsets_ += first;
  else if (short_offsets_ != nullptr)
    view.short_offsets_ += first;
  else
    view.values_ += first * stride_;
  if (has_targets()) view.targets_ += first;
  if (weights_ != nullptr) view.weights_ += first;
  if (marks_ != nullptr) view.marks_ += first;
  return view;
}

template <typename Scalar>
Rows<Scalar> Rows<Scalar>::feature_slice(Index first, Index count) const {
  if (!(first >= 0 && count >= 1 && first + count <= dim_))
    throw std::invalid_argument("a feature slice must lie in the features [0, " + std::to_string(dim_) +
                                ") and not be empty, got first = " + std::to_string(first) +
                                " and count = " + std::to_string(count));
  Rows view = *this;
  view.dim_ = count;
  if (is_sparse())
    view.first_column_ += first;
  else
    view.values_ += first;
  return view;
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
