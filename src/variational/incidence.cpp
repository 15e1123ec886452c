#include "variational/incidence.h"

#include <algorithm>
#include <utility>

namespace dyad {
namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

}  // namespace

template <typename Scalar>
Incidence<Scalar>::Incidence(const Rows<Scalar>& rows) : dim(rows.dim()) {
  copy(rows);
  transpose();
  find_groups();
}

/// Rows with the same first feature come together, so that many features find their rows side by side.
template <typename Scalar>
void Incidence<Scalar>::copy(const Rows<Scalar>& rows) {
  const auto first_feature = [&](Index i) {
    Index first = dim;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (x != 0) first = std::min(first, j);
    });
    return first;
  };
  std::vector<std::pair<Index, Index>> order;
  for (Index i = 0; i < rows.count(); ++i)
    if (rows.weight(i) > 0) order.emplace_back(first_feature(i), i);
  std::sort(order.begin(), order.end());
  count = static_cast<Index>(order.size());
  row_offsets.push_back(0);
  for (const auto& [first, i] : order) {
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (x == 0) return;
      row_features.push_back(static_cast<std::int32_t>(j));
      row_values.push_back(x);
    });
    const auto end = static_cast<Index>(row_values.size());
    deep = deep || end - row_offsets.back() > 2;
    row_offsets.push_back(end);
    targets.push_back(static_cast<double>(rows.targets()[at(i)]));
    weights.push_back(static_cast<double>(rows.weight(i)));
  }
}

template <typename Scalar>
void Incidence<Scalar>::transpose() {
  feature_offsets.assign(at(dim + 1), 0);
  for (const std::int32_t j : row_features) ++feature_offsets[at(j + 1)];
  for (std::size_t j = 1; j < feature_offsets.size(); ++j) feature_offsets[j] += feature_offsets[j - 1];
  feature_rows.resize(row_values.size());
  feature_values.resize(row_values.size());
  if (!deep) {
    partners.resize(row_values.size());
    partner_values.resize(row_values.size());
  }
  std::vector<Index> next(feature_offsets.begin(), feature_offsets.end() - 1);
  for (Index i = 0; i < count; ++i) {
    const Index first = row_offsets[at(i)];
    const Index last = row_offsets[at(i + 1)];
    for (Index e = first; e < last; ++e) {
      const std::size_t to = at(next[at(row_features[at(e)])]++);
      feature_rows[to] = static_cast<std::int32_t>(i);
      feature_values[to] = row_values[at(e)];
      if (deep) continue;
      const bool has_partner = last - first == 2;
      const std::size_t other = at(first + (e == first ? 1 : 0));
      partners[to] = has_partner ? row_features[other] : static_cast<std::int32_t>(dim);
      partner_values[to] = has_partner ? row_values[other] : Scalar(0);
    }
  }
}

/// Each feature joins the first group none of whose members it ever meets.
template <typename Scalar>
void Incidence<Scalar>::find_groups() {
  constexpr std::size_t most = 128;  // beyond, a feature is a group of its own
  std::vector<std::vector<bool>> taken;
  std::vector<std::vector<std::int32_t>> alone;
  for (Index j = 0; j < dim; ++j) {
    const auto begin = feature_rows.begin() + first_of(j);
    const auto end = begin + count_of(j);
    if (begin == end) continue;
    std::size_t group = 0;
    while (group < taken.size() && std::any_of(begin, end, [&](std::int32_t i) { return taken[group][at(i)]; }))
      ++group;
    if (group == most) {
      alone.push_back({static_cast<std::int32_t>(j)});
      continue;
    }
    if (group == taken.size()) {
      taken.emplace_back(at(count));
      groups.emplace_back();
    }
    groups[group].push_back(static_cast<std::int32_t>(j));
    std::for_each(begin, end, [&](std::int32_t i) { taken[group][at(i)] = true; });
  }
  groups.insert(groups.end(), alone.begin(), alone.end());
}

template struct Incidence<float>;
template struct Incidence<double>;

}  // namespace dyad
