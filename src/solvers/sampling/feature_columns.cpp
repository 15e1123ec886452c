#include "solvers/sampling/feature_columns.h"

#include <algorithm>
#include <numeric>

namespace dyad {
namespace {

/// Calls visit(position, view, row) for each row of the views.
template <typename Scalar, typename Visit>
void for_each_row(std::span<const Rows<Scalar>> views, Visit&& visit) {
  std::size_t position = 0;
  for (const Rows<Scalar>& view : views)
    for (Index i = 0; i < view.count(); ++i) visit(position++, view, i);
}

template <typename Scalar, typename Visit>
void for_each_non_zero(const Rows<Scalar>& view, Index i, Visit&& visit) {
  view.for_each_entry(i, [&](Index j, Scalar x) {
    if (x != 0) visit(j, static_cast<float>(x));
  });
}

}  // namespace

template <typename Scalar>
FeatureColumns::FeatureColumns(std::span<const Rows<Scalar>> views) {
  const Index dim = views.front().dim();
  offsets_.assign(at(dim + 1), 0);
  std::vector<Index> row_places(at(dim + 2), 0);  // counting sort by the first feature; rows without entries come last
  std::vector<std::int32_t> first_features;
  bool values_are_ones = true;
  for_each_row(views, [&](std::size_t, const Rows<Scalar>& view, Index i) {
    Index first = dim;
    for_each_non_zero(view, i, [&](Index j, float x) {
      first = std::min(first, j);
      ++offsets_[at(j + 1)];
      values_are_ones = values_are_ones && x == 1;
    });
    first_features.push_back(static_cast<std::int32_t>(first));
    ++row_places[at(first + 1)];
  });
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  std::partial_sum(row_places.begin(), row_places.end(), row_places.begin());
  source_rows_.resize(first_features.size());
  for (std::size_t i = 0; i < first_features.size(); ++i)
    source_rows_[at(row_places[at(first_features[i])]++)] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> sorted_row(source_rows_.size());
  for (std::size_t i = 0; i < source_rows_.size(); ++i) sorted_row[at(source_rows_[i])] = static_cast<std::int32_t>(i);
  targets_.resize(source_rows_.size());
  weights_.resize(source_rows_.size());
  for_each_row(views, [&](std::size_t position, const Rows<Scalar>& view, Index i) {
    const std::size_t row = at(sorted_row[position]);
    targets_[row] = view.has_targets() ? static_cast<float>(view.targets()[at(i)]) : 0.0F;
    weights_[row] = static_cast<float>(view.weight(i));
  });
  rows_.resize(at(entries()));
  if (!values_are_ones) values_.resize(rows_.size());
  // Visits the sorted rows in order, so that the rows of a column ascend.
  std::vector<Index> next(offsets_.begin(), offsets_.end() - 1);
  std::vector<Index> view_begin{0};
  for (const Rows<Scalar>& view : views) view_begin.push_back(view_begin.back() + view.count());
  for (std::size_t row = 0; row < source_rows_.size(); ++row) {
    const Index position = source_rows_[row];
    const auto view = std::upper_bound(view_begin.begin(), view_begin.end(), position) - view_begin.begin() - 1;
    for_each_non_zero(views[at(view)], position - view_begin[at(view)], [&](Index j, float x) {
      const std::size_t entry = at(next[at(j)]++);
      rows_[entry] = static_cast<std::int32_t>(row);
      if (!values_are_ones) values_[entry] = x;
    });
  }
}

double FeatureColumns::bytes_for(double rows, double entries) {
  return entries * (sizeof(std::int32_t) + sizeof(float)) + rows * (2 * sizeof(float) + sizeof(std::int32_t));
}

template FeatureColumns::FeatureColumns(std::span<const Rows<float>>);
template FeatureColumns::FeatureColumns(std::span<const Rows<double>>);

}  // namespace dyad
