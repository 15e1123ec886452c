#include "variational/incidence.h"

#include <algorithm>

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
std::vector<std::int32_t> Incidence<Scalar>::order_of(const Rows<Scalar>& rows) const {
  const auto first_feature = [&](Index i) {
    Index first = dim;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (x != 0) first = std::min(first, j);
    });
    return first;
  };
  std::vector<Index> next(at(dim + 2));
  for (Index i = 0; i < rows.count(); ++i)
    if (rows.weight(i) > 0) ++next[at(first_feature(i) + 1)];
  for (std::size_t j = 1; j < next.size(); ++j) next[j] += next[j - 1];
  std::vector<std::int32_t> order(at(next.back()));
  for (Index i = 0; i < rows.count(); ++i)
    if (rows.weight(i) > 0) order[at(next[at(first_feature(i))]++)] = static_cast<std::int32_t>(i);
  return order;
}

template <typename Scalar>
void Incidence<Scalar>::copy(const Rows<Scalar>& rows) {
  const std::vector<std::int32_t> order = order_of(rows);
  count = static_cast<Index>(order.size());
  Index entries = 0;
  bool all_pairs = true;
  bool all_once = true;
  for (const std::int32_t i : order) {
    Index own = 0;
    rows.for_each_entry(i, [&](Index, Scalar x) {
      if (x == 0) return;
      ++own;
      all_ones_ = all_ones_ && x == 1;
    });
    entries += own;
    deep = deep || own > 2;
    all_pairs = all_pairs && own == 2;
    all_once = all_once && rows.weight(i) == 1;
  }
  row_features.reserve(at(entries));
  row_values.resize(at(entries), all_ones_);
  targets.reserve(at(count));
  weights.resize(at(count), all_once);
  if (!all_pairs) row_offsets_.push_back(0);
  for (const std::int32_t i : order) {
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (x == 0) return;
      row_values.set(row_features.size(), x);
      row_features.push_back(static_cast<std::int32_t>(j));
    });
    if (!all_pairs) row_offsets_.push_back(static_cast<Index>(row_features.size()));
    weights.set(targets.size(), static_cast<double>(rows.weight(i)));
    targets.push_back(static_cast<double>(rows.targets()[at(i)]));
  }
}

template <typename Scalar>
void Incidence<Scalar>::transpose() {
  feature_offsets.assign(at(dim + 1), 0);
  for (const std::int32_t j : row_features) ++feature_offsets[at(j + 1)];
  for (std::size_t j = 1; j < feature_offsets.size(); ++j) feature_offsets[j] += feature_offsets[j - 1];
  feature_rows.resize(row_features.size());
  feature_values.resize(row_features.size(), all_ones_);
  if (!deep) {
    partners.resize(row_features.size());
    partner_values.resize(row_features.size(), all_ones_ && row_offsets_.empty());
  }
  std::vector<Index> next(feature_offsets.begin(), feature_offsets.end() - 1);
  for (Index i = 0; i < count; ++i) {
    const Index first = first_entry(i);
    const Index last = first_entry(i + 1);
    for (Index e = first; e < last; ++e) {
      const std::size_t to = at(next[at(row_features[at(e)])]++);
      feature_rows[to] = static_cast<std::int32_t>(i);
      feature_values.set(to, static_cast<Scalar>(row_values[at(e)]));
      if (deep) continue;
      const bool has_partner = last - first == 2;
      const std::size_t other = at(first + (e == first ? 1 : 0));
      partners[to] = has_partner ? row_features[other] : static_cast<std::int32_t>(dim);
      partner_values.set(to, has_partner ? static_cast<Scalar>(row_values[other]) : Scalar(0));
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
