#include "solvers/variational/incidence.h"

#include <algorithm>
#include <numeric>

namespace dyad {

template <typename Scalar>
Incidence<Scalar>::Incidence(const Rows<Scalar>& rows) : dim(rows.dim()), rows_(rows) {
  sort_rows();
  copy_entries();
  list_occurrences();
  color_features();
}

template <typename Scalar>
template <typename Visit>
void Incidence<Scalar>::for_each_entry_of(Index source, Visit&& visit) const {
  rows_.for_each_entry(source, [&](Index j, Scalar x) {
    if (x != 0) visit(j, x);
  });
}

template <typename Scalar>
Index Incidence<Scalar>::first_feature_of(Index source) const {
  Index first = dim;
  for_each_entry_of(source, [&](Index j, Scalar) { first = std::min(first, j); });
  return first;
}

template <typename Scalar>
template <typename Visit>
void Incidence<Scalar>::for_each_row(Visit&& visit) const {
  std::vector<Index> next = first_rows_;
  for (Index source = 0; source < rows_.count(); ++source)
    if (rows_.weight(source) > 0) visit(next[at(first_feature_of(source))]++, source);
}

/// Counting sort by the first feature. Rows without entries come last.
template <typename Scalar>
void Incidence<Scalar>::sort_rows() {
  first_rows_.assign(at(dim + 2), 0);
  for (Index source = 0; source < rows_.count(); ++source) {
    if (!(rows_.weight(source) > 0)) continue;
    weights_are_ones = weights_are_ones && rows_.weight(source) == 1;
    Index row_entries = 0;
    for_each_entry_of(source, [&](Index, Scalar x) {
      ++row_entries;
      values_are_ones_ = values_are_ones_ && x == 1;
    });
    entry_count_ += row_entries;
    has_long_rows = has_long_rows || row_entries > 2;
    rows_are_pairs_ = rows_are_pairs_ && row_entries == 2;
    ++first_rows_[at(first_feature_of(source) + 1)];
  }
  std::partial_sum(first_rows_.begin(), first_rows_.end(), first_rows_.begin());
  count = first_rows_.back();
  source_rows_.resize(at(count));
  for_each_row([&](Index i, Index source) { source_rows_[at(i)] = static_cast<std::int32_t>(source); });
}

template <typename Scalar>
void Incidence<Scalar>::copy_entries() {
  if (!rows_are_pairs_) {
    row_offsets_.resize(at(count + 1));
    for_each_row(
        [&](Index i, Index source) { for_each_entry_of(source, [&](Index, Scalar) { ++row_offsets_[at(i + 1)]; }); });
    std::partial_sum(row_offsets_.begin(), row_offsets_.end(), row_offsets_.begin());
  }
  row_features.resize(at(entry_count_));
  row_values.resize(at(entry_count_), values_are_ones_);
  for_each_row([&](Index i, Index source) {
    std::size_t entry = at(first_entry(i));
    for_each_entry_of(source, [&](Index j, Scalar x) {
      row_features[entry] = static_cast<std::int32_t>(j);
      row_values.set(entry++, x);
    });
  });
}

template <typename Scalar>
void Incidence<Scalar>::list_occurrences() {
  const auto for_each_listed = [&](auto&& visit) {
    for (Index i = 0; i < count; ++i)
      for (Index e = first_entry(i) + 1; e < first_entry(i + 1); ++e) visit(i, at(e), at(row_features[at(e)]));
  };
  list_offsets_.assign(at(dim + 1), 0);
  for_each_listed([&](Index, std::size_t, std::size_t feature) { ++list_offsets_[feature + 1]; });
  std::partial_sum(list_offsets_.begin(), list_offsets_.end(), list_offsets_.begin());
  listed_rows_.resize(at(list_offsets_.back()));
  listed_values_.resize(listed_rows_.size(), values_are_ones_);
  std::vector<Index> next = list_offsets_;
  for_each_listed([&](Index i, std::size_t entry, std::size_t feature) {
    const std::size_t to = at(next[feature]++);
    listed_rows_[to] = static_cast<std::int32_t>(i);
    listed_values_.set(to, static_cast<Scalar>(row_values[entry]));
  });
}

/// Greedy coloring: each feature joins the first class with which it shares no row.
template <typename Scalar>
void Incidence<Scalar>::color_features() {
  // Maximum number of classes with more than one feature. Bounds the time to 128 tests per entry and the memory to 128
  // bits per row. Features that do not fit get a class each. Sensitivity: docs/constants.md.
  constexpr std::size_t max_color_classes = 128;
  std::vector<std::vector<bool>> class_rows;  // per class: the rows that contain one of its features
  std::vector<std::vector<std::int32_t>> single_classes;
  for (Index j = 0; j < dim; ++j) {
    const Occurrences of = occurrences(j);
    if (of.count == 0) continue;
    const auto shares_row = [&](const std::vector<bool>& rows) {
      for (Index e = 0; e < of.count; ++e)
        if (rows[at(row(of, e))]) return true;
      return false;
    };
    std::size_t color = 0;
    while (color < class_rows.size() && shares_row(class_rows[color])) ++color;
    if (color == max_color_classes) {
      single_classes.push_back({static_cast<std::int32_t>(j)});
      continue;
    }
    if (color == class_rows.size()) {
      class_rows.emplace_back(at(count));
      color_classes.emplace_back();
    }
    color_classes[color].push_back(static_cast<std::int32_t>(j));
    for (Index e = 0; e < of.count; ++e) class_rows[color][at(row(of, e))] = true;
  }
  color_classes.insert(color_classes.end(), single_classes.begin(), single_classes.end());
}

template class Incidence<float>;
template class Incidence<double>;

}  // namespace dyad
