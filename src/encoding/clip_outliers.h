#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/types.h>

#include "base/median.h"
#include "data/row_block.h"
#include "likelihood/likelihood.h"

namespace dyad {

// The folder encoding converts records to features: numeric and categorical columns, scaling, targets and outliers. The
// folder encoding/sources contains one row source per input layout.

/// Squared Euclidean norm of each row.
template <typename Scalar>
std::vector<double> squared_row_norms(const RowBlock<Scalar>& block) {
  const Rows<Scalar> rows = block.view();
  std::vector<double> squared_norms(static_cast<std::size_t>(rows.count()));
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index, Scalar x) {
      squared_norms[static_cast<std::size_t>(i)] += static_cast<double>(x) * static_cast<double>(x);
    });
  return squared_norms;
}

/// Median of squared_row_norms().
template <typename Scalar>
double median_squared_row_norm(const RowBlock<Scalar>& block) {
  std::vector<double> squared_norms = squared_row_norms(block);
  return median(squared_norms);
}

/// Limits the effect of outliers on training. A row whose norm exceeds 1000 times the typical norm gets weight 0. A
/// target of a likelihood with an identity link is clipped to [-clip_limit, clip_limit]. Before that, if more than 3
/// rows and more than 1% of the block are outliers, the threshold is replaced: `typical_squared_norm` becomes the
/// median squared norm of the block. Likewise, `clip_limit` becomes the largest double if more than 3 targets and more
/// than 1% of them exceed it in magnitude.
/// `typical_squared_norm`: initially the median squared norm of the first rows; 0: no row is an outlier. Returns the
/// number of rows whose weight was set to 0.
template <typename Scalar>
Index clip_outliers(RowBlock<Scalar>& block, Task task, double& typical_squared_norm, double& clip_limit) {
  // A norm of 1000 times the typical one. Sensitivity: docs/constants.md.
  constexpr double outlier_squared_norm_ratio = 1e6;
  // Up to this number, outliers are never frequent. Sensitivity: docs/constants.md.
  constexpr std::ptrdiff_t max_outliers_per_block = 3;
  constexpr std::ptrdiff_t min_rows_per_outlier = 100;  // outliers in more than 1% of the rows are frequent
  const auto are_frequent = [&](std::ptrdiff_t count) {
    return count > max_outliers_per_block && min_rows_per_outlier * count > block.count();
  };
  const std::vector<double> squared_norms = squared_row_norms(block);
  const auto is_outlier = [&](double squared_norm) {
    return typical_squared_norm > 0 && squared_norm > outlier_squared_norm_ratio * typical_squared_norm;
  };
  if (are_frequent(std::count_if(squared_norms.begin(), squared_norms.end(), is_outlier)))
    typical_squared_norm = median_squared_row_norm(block);
  Index outlier_rows = 0;
  for (std::size_t i = 0; i < squared_norms.size(); ++i) {
    if (!is_outlier(squared_norms[i])) continue;
    block.weights.resize(squared_norms.size(), Scalar(1));
    block.weights[i] = 0;
    ++outlier_rows;
  }
  if (!likelihood_of(task).has_identity_link()) return outlier_rows;
  const auto is_beyond_limit = [&](Scalar y) { return std::abs(static_cast<double>(y)) > clip_limit; };
  if (are_frequent(std::count_if(block.targets.begin(), block.targets.end(), is_beyond_limit)))
    clip_limit = std::numeric_limits<double>::max();
  for (Scalar& y : block.targets)
    if (is_beyond_limit(y)) y = static_cast<Scalar>(std::copysign(clip_limit, static_cast<double>(y)));
  return outlier_rows;
}

}  // namespace dyad
