#include "training/one_pass/feature_scales.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/median.h"

namespace dyad {
namespace {

/// Absolute values are clipped at this multiple of their median. Sensitivity: docs/constants.md.
constexpr double outlier_threshold_medians = 10;
/// Number of non-zero values from which the scale of a feature is computed from its values alone. Sensitivity:
/// docs/constants.md.
constexpr std::size_t min_values_per_feature = 20;
/// Number of pseudo-values of the typical scale in the scale of a feature with fewer values. It prevents scales that
/// are far too small, for example from a single value near 0. Sensitivity: docs/constants.md.
constexpr double typical_scale_pseudo_values = 4;
/// Powers of the scale up to the fourth, and of its inverse, must be finite: scale < max^(1/4). The exponent leaves a
/// factor of max^0.12 (5e4 in single precision) for sums and products.
constexpr double max_scale_exponent = 0.22;

/// Root mean square of absolute values after clipping.
double robust_rms(std::vector<double>& sizes) {
  const double max_size = outlier_threshold_medians * median(sizes);
  double squares = 0;
  for (const double size : sizes) squares += std::pow(std::min(size, max_size), 2);
  return std::sqrt(squares / static_cast<double>(sizes.size()));
}

/// Whether fourth powers of the scale and of its inverse are representable. Features with other scales are omitted.
template <typename Scalar>
bool is_representable(double scale) {
  const double max_scale = std::pow(static_cast<double>(std::numeric_limits<Scalar>::max()), max_scale_exponent);
  return scale > 1 / max_scale && scale < max_scale;
}

}  // namespace

std::vector<double> FeatureScales::inverse() const {
  std::vector<double> result(scales_);
  for (double& scale : result) scale = scale > 0 ? 1 / scale : 0;
  return result;
}

template <typename Scalar>
std::vector<std::pair<Index, double>> FeatureScales::add_standardized_features(const Rows<Scalar>& rows) {
  std::vector<std::pair<Index, double>> added;
  if (unseen_ == 0) return added;
  const auto add = [&](Index j) {
    double& scale = scales_[static_cast<std::size_t>(j)];
    if (scale > 0) return;
    scale = 1;
    --unseen_;
    added.emplace_back(j, scale);
  };
  if (!rows.is_sparse())
    for (Index j = 0; j < rows.dim(); ++j) add(j);
  else
    for (Index i = 0; i < rows.count(); ++i)
      rows.for_each_entry(i, [&](Index j, Scalar x) {
        if (j >= first_unseen_ && x != 0 && rows.weight(i) > 0) add(j);
      });
  const auto dim = static_cast<Index>(scales_.size());
  while (first_unseen_ < dim && scales_[static_cast<std::size_t>(first_unseen_)] > 0) ++first_unseen_;
  return added;
}

void FeatureScales::count_unseen() {
  unseen_ = std::count(scales_.begin(), scales_.end(), 0.0);
  first_unseen_ = 0;
}

template <typename Scalar>
std::vector<std::pair<Index, double>> FeatureScales::add_new_features(const Rows<Scalar>& rows) {
  if (are_one_) return add_standardized_features(rows);
  std::map<Index, std::vector<double>> sizes;
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (scales_[static_cast<std::size_t>(j)] > 0 || x == 0 || !(rows.weight(i) > 0)) return;
      sizes[j].push_back(std::abs(static_cast<double>(x)));
    });
  std::vector<std::pair<Index, double>> added;
  std::vector<double> reliable;  // scales of features with many values
  for (auto& [j, values] : sizes) {
    added.emplace_back(j, robust_rms(values));
    if (values.size() >= min_values_per_feature) reliable.push_back(added.back().second);
  }
  if (reliable.empty() && !(typical_ > 0))
    for (const auto& [j, scale] : added) reliable.push_back(scale);
  if (!reliable.empty()) typical_ = median(reliable);
  for (auto& [j, scale] : added) {
    const auto count = static_cast<double>(sizes[j].size());
    if (sizes[j].size() < min_values_per_feature)
      scale = std::sqrt((count * scale * scale + typical_scale_pseudo_values * typical_ * typical_) /
                        (count + typical_scale_pseudo_values));
  }
  const auto omitted =
      std::erase_if(added, [](const auto& feature) { return !is_representable<Scalar>(feature.second); });
  omitted_ = std::max(omitted_, static_cast<Index>(omitted));
  for (const auto& [j, scale] : added) scales_[static_cast<std::size_t>(j)] = scale;
  return added;
}

void FeatureScales::adopt(std::span<const double> scales) {
  for (std::size_t j = 0; j < scales_.size(); ++j)
    if (!(scales_[j] > 0)) scales_[j] = scales[j];
  count_unseen();
}

void FeatureScales::grow(Index left_before, Index left, Index right) {
  scales_.insert(scales_.end(), static_cast<std::size_t>(right), 0.0);
  scales_.insert(scales_.begin() + left_before, static_cast<std::size_t>(left), 0.0);
  unseen_ += left + right;
  if (left > 0) first_unseen_ = std::min(first_unseen_, left_before);
}

void FeatureScales::archive(Archive& archive) {
  archive.vector("all", scales_, static_cast<Index>(scales_.size()));
  archive.number("typical", typical_);
  count_unseen();
}

template std::vector<std::pair<Index, double>> FeatureScales::add_new_features(const Rows<float>&);
template std::vector<std::pair<Index, double>> FeatureScales::add_new_features(const Rows<double>&);

}  // namespace dyad
