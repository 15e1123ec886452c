#include "training/one_pass/feature_scales.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/median.h"

namespace dyad {
namespace {

/// The root mean square of sizes, of which outliers are clipped at ten times the typical size.
double robust_size(std::vector<double>& sizes) {
  const double most = 10 * median(sizes);
  double squares = 0;
  for (const double size : sizes) squares += std::pow(std::min(size, most), 2);
  return std::sqrt(squares / static_cast<double>(sizes.size()));
}

/// Whether fourth powers of a scale, and of its inverse, are numbers. A feature beyond is left out.
template <typename Scalar>
bool is_possible(double scale) {
  const double most = std::pow(static_cast<double>(std::numeric_limits<Scalar>::max()), 0.22);
  return scale > 1 / most && scale < most;
}

}  // namespace

std::vector<double> FeatureScales::inverse() const {
  std::vector<double> result(scales_);
  for (double& scale : result) scale = scale > 0 ? 1 / scale : 0;
  return result;
}

template <typename Scalar>
std::vector<std::pair<Index, double>> FeatureScales::meet_standardised(const Rows<Scalar>& rows) {
  std::vector<std::pair<Index, double>> met;
  if (unseen_ == 0) return met;
  const auto show = [&](Index j) {
    double& scale = scales_[static_cast<std::size_t>(j)];
    if (scale > 0) return;
    scale = 1;
    --unseen_;
    met.emplace_back(j, scale);
  };
  if (!rows.is_sparse())
    for (Index j = 0; j < rows.dim(); ++j) show(j);
  else
    for (Index i = 0; i < rows.count(); ++i)
      rows.for_each_entry(i, [&](Index j, Scalar x) {
        if (x != 0 && rows.weight(i) > 0) show(j);
      });
  return met;
}

void FeatureScales::count_unseen() { unseen_ = std::count(scales_.begin(), scales_.end(), 0.0); }

template <typename Scalar>
std::vector<std::pair<Index, double>> FeatureScales::add_new_features(const Rows<Scalar>& rows) {
  if (standardised_) return meet_standardised(rows);
  std::map<Index, std::vector<double>> sizes;
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (scales_[static_cast<std::size_t>(j)] > 0 || x == 0 || !(rows.weight(i) > 0)) return;
      sizes[j].push_back(std::abs(static_cast<double>(x)));
    });
  // A single value may be next to nothing, and a scale that is far too small does harm: few values count together with
  // what is typical.
  constexpr std::size_t enough = 20;
  constexpr double doubt = 4;
  std::vector<std::pair<Index, double>> met;
  std::vector<double> sure;
  for (auto& [j, found] : sizes) {
    met.emplace_back(j, robust_size(found));
    if (found.size() >= enough) sure.push_back(met.back().second);
  }
  if (sure.empty() && !(typical_ > 0))
    for (const auto& [j, scale] : met) sure.push_back(scale);
  if (!sure.empty()) typical_ = median(sure);
  for (auto& [j, scale] : met) {
    const auto count = static_cast<double>(sizes[j].size());
    if (sizes[j].size() < enough)
      scale = std::sqrt((count * scale * scale + doubt * typical_ * typical_) / (count + doubt));
  }
  const auto left_out = std::erase_if(met, [](const auto& feature) { return !is_possible<Scalar>(feature.second); });
  left_out_ = std::max(left_out_, static_cast<Index>(left_out));
  for (const auto& [j, scale] : met) scales_[static_cast<std::size_t>(j)] = scale;
  return met;
}

void FeatureScales::learn_of(std::span<const double> scales) {
  for (std::size_t j = 0; j < scales_.size(); ++j)
    if (!(scales_[j] > 0)) scales_[j] = scales[j];
  count_unseen();
}

void FeatureScales::grow(Index left_before, Index left, Index right) {
  scales_.insert(scales_.end(), static_cast<std::size_t>(right), 0.0);
  scales_.insert(scales_.begin() + left_before, static_cast<std::size_t>(left), 0.0);
  unseen_ += left + right;
}

void FeatureScales::archive(Archive& archive) {
  archive.vector("all", scales_, static_cast<Index>(scales_.size()));
  archive.number("typical", typical_);
  count_unseen();
}

template std::vector<std::pair<Index, double>> FeatureScales::add_new_features(const Rows<float>&);
template std::vector<std::pair<Index, double>> FeatureScales::add_new_features(const Rows<double>&);

}  // namespace dyad
