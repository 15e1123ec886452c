#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <dyad/data.h>

#include "base/median.h"
#include "data/row_block.h"
#include "likelihood/likelihood.h"

namespace dyad {

/// Squared lengths of the rows.
template <typename Scalar>
std::vector<double> squared_lengths(const RowBlock<Scalar>& block) {
  const Rows<Scalar> rows = block.view();
  std::vector<double> lengths(static_cast<std::size_t>(rows.count()));
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index, Scalar x) {
      lengths[static_cast<std::size_t>(i)] += static_cast<double>(x) * static_cast<double>(x);
    });
  return lengths;
}

template <typename Scalar>
double median_length(const RowBlock<Scalar>& block) {
  std::vector<double> lengths = squared_lengths(block);
  return median(lengths);
}

/// One broken row must not undo what all others have taught: a row a thousand times as long as usual is predicted but
/// does not count, and a target beyond reach counts as the end of it. Frequent outliers raise the thresholds.
/// Returns the number of such rows.
template <typename Scalar>
Index clip_outliers(RowBlock<Scalar>& block, Task task, double& usual_length, double& reach) {
  constexpr double outlier_ratio = 1e6;  // of squared lengths
  const auto are_many = [&](std::ptrdiff_t count) { return count > 3 && 100 * count > block.count(); };
  const std::vector<double> lengths = squared_lengths(block);
  const auto is_long = [&](double length) { return usual_length > 0 && length > outlier_ratio * usual_length; };
  if (are_many(std::count_if(lengths.begin(), lengths.end(), is_long))) usual_length = median_length(block);
  Index wild_rows = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (!is_long(lengths[i])) continue;
    block.weights.resize(lengths.size(), Scalar(1));
    block.weights[i] = 0;
    ++wild_rows;
  }
  if (!likelihood_of(task).has_identity_link()) return wild_rows;
  const auto is_far = [&](Scalar y) { return std::abs(static_cast<double>(y)) > reach; };
  if (are_many(std::count_if(block.targets.begin(), block.targets.end(), is_far)))
    reach = std::numeric_limits<double>::max();
  for (Scalar& y : block.targets)
    if (is_far(y)) y = static_cast<Scalar>(std::copysign(reach, static_cast<double>(y)));
  return wild_rows;
}

}  // namespace dyad
