#include "solvers/variational/incidence.h"

#include <algorithm>
#include <numeric>

namespace dyad {

template <typename Scalar>
Incidence<Scalar>::Incidence(const Rows<Scalar>& rows) : dim(rows.dim()), rows_(rows) {
  put_in_order();
  copy();
  transpose();
  find_groups();
}

template <typename Scalar>
template <typename Visit>
void Incidence<Scalar>::for_each_entry_of(Index given, Visit&& visit) const {
  rows_.for_each_entry(given, [&](Index j, Scalar x) {
    if (x != 0) visit(j, x);
  });
}

template <typename Scalar>
Index Incidence<Scalar>::first_feature_of(Index given) const {
  Index first = dim;
  for_each_entry_of(given, [&](Index j, Scalar) { first = std::min(first, j); });
  return first;
}

template <typename Scalar>
template <typename Visit>
void Incidence<Scalar>::for_each_row(Visit&& visit) const {
  std::vector<Index> next = first_rows_;
  for (Index given = 0; given < rows_.count(); ++given)
    if (rows_.weight(given) > 0) visit(next[at(first_feature_of(given))]++, given);
}

/// Rows with the same first feature come together; those without any come last.
template <typename Scalar>
void Incidence<Scalar>::put_in_order() {
  first_rows_.assign(at(dim + 2), 0);
  for (Index given = 0; given < rows_.count(); ++given) {
    if (!(rows_.weight(given) > 0)) continue;
    weights_are_ones = weights_are_ones && rows_.weight(given) == 1;
    Index own = 0;
    for_each_entry_of(given, [&](Index, Scalar x) {
      ++own;
      all_ones_ = all_ones_ && x == 1;
    });
    entries_ += own;
    deep = deep || own > 2;
    all_pairs_ = all_pairs_ && own == 2;
    ++first_rows_[at(first_feature_of(given) + 1)];
  }
  std::partial_sum(first_rows_.begin(), first_rows_.end(), first_rows_.begin());
  count = first_rows_.back();
  order_.resize(at(count));
  for_each_row([&](Index i, Index given) { order_[at(i)] = static_cast<std::int32_t>(given); });
}

template <typename Scalar>
void Incidence<Scalar>::copy() {
  if (!all_pairs_) {
    row_offsets_.resize(at(count + 1));
    for_each_row(
        [&](Index i, Index given) { for_each_entry_of(given, [&](Index, Scalar) { ++row_offsets_[at(i + 1)]; }); });
    std::partial_sum(row_offsets_.begin(), row_offsets_.end(), row_offsets_.begin());
  }
  row_features.resize(at(entries_));
  row_values.resize(at(entries_), all_ones_);
  for_each_row([&](Index i, Index given) {
    std::size_t entry = at(first_entry(i));
    for_each_entry_of(given, [&](Index j, Scalar x) {
      row_features[entry] = static_cast<std::int32_t>(j);
      row_values.set(entry++, x);
    });
  });
}

template <typename Scalar>
void Incidence<Scalar>::transpose() {
  const auto for_each_listed = [&](auto&& visit) {
    for (Index i = 0; i < count; ++i)
      for (Index e = first_entry(i) + 1; e < first_entry(i + 1); ++e) visit(i, at(e), at(row_features[at(e)]));
  };
  list_offsets_.assign(at(dim + 1), 0);
  for_each_listed([&](Index, std::size_t, std::size_t feature) { ++list_offsets_[feature + 1]; });
  std::partial_sum(list_offsets_.begin(), list_offsets_.end(), list_offsets_.begin());
  listed_rows_.resize(at(list_offsets_.back()));
  listed_values_.resize(listed_rows_.size(), all_ones_);
  std::vector<Index> next = list_offsets_;
  for_each_listed([&](Index i, std::size_t entry, std::size_t feature) {
    const std::size_t to = at(next[feature]++);
    listed_rows_[to] = static_cast<std::int32_t>(i);
    listed_values_.set(to, static_cast<Scalar>(row_values[entry]));
  });
}

/// Each feature joins the first group none of whose members it ever meets.
template <typename Scalar>
void Incidence<Scalar>::find_groups() {
  constexpr std::size_t most = 128;  // beyond, a feature is a group of its own
  std::vector<std::vector<bool>> taken;
  std::vector<std::vector<std::int32_t>> alone;
  for (Index j = 0; j < dim; ++j) {
    const Occurrences own = of(j);
    if (own.count == 0) continue;
    const auto meets = [&](const std::vector<bool>& rows) {
      for (Index e = 0; e < own.count; ++e)
        if (rows[at(row(own, e))]) return true;
      return false;
    };
    std::size_t group = 0;
    while (group < taken.size() && meets(taken[group])) ++group;
    if (group == most) {
      alone.push_back({static_cast<std::int32_t>(j)});
      continue;
    }
    if (group == taken.size()) {
      taken.emplace_back(at(count));
      groups.emplace_back();
    }
    groups[group].push_back(static_cast<std::int32_t>(j));
    for (Index e = 0; e < own.count; ++e) taken[group][at(row(own, e))] = true;
  }
  groups.insert(groups.end(), alone.begin(), alone.end());
}

template class Incidence<float>;
template class Incidence<double>;

}  // namespace dyad
