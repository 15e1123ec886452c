#include "model/anova_model.h"

#include <algorithm>
#include <cmath>

#include "linalg/gemm.h"

namespace dyad {

HatWeights AnovaAxis::evaluate(double value) const {
  if (is_categorical) {
    const auto found = std::find(levels.begin(), levels.end(), static_cast<Index>(value));
    if (found == levels.end()) return {};
    return {found - levels.begin(), 1, 0};
  }
  const auto count = static_cast<Index>(knots.size());
  if (std::isnan(value)) return has_missing_level ? HatWeights{size() - 1, 1, 0} : HatWeights{};
  const Index first_index = first_knot();
  if (count < 2) return {first_index, 1, 0};
  // Straight lines continue by at most the distance of the first and the last knot.
  const double span = knots.back() - knots.front();
  if (value < knots.front() && has_tails) return {0, std::max(value - knots.front(), -span), 1};
  if (value > knots.back() && has_tails) return {count, 1, std::min(value - knots.back(), span)};
  if (value <= knots.front()) return {first_index, 1, 0};
  if (value >= knots.back()) return {first_index + count - 1, 1, 0};
  const auto upper = std::upper_bound(knots.begin(), knots.end(), value);
  const Index left = upper - knots.begin() - 1;
  const double share = (value - *(upper - 1)) / (*upper - *(upper - 1));
  return {first_index + left, 1 - share, share};
}

Index AnovaFunctions::block_size(const AnovaBlock& block) const {
  Index size = 1;
  for (const Index axis : block.axes) size *= axes[static_cast<std::size_t>(axis)].size();
  return size;
}

void AnovaFunctions::evaluate_axes(const ColumnTable& table, Index i, std::vector<HatWeights>& hats) const {
  hats.resize(axes.size());
  for (std::size_t a = 0; a < axes.size(); ++a)
    hats[a] =
        axes[a].evaluate(table.columns[static_cast<std::size_t>(axes[a].column)].values[static_cast<std::size_t>(i)]);
}

void AnovaFunctions::predict(const ColumnTable& table, std::span<double> predictions) const {
  std::vector<HatWeights> hats;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    evaluate_axes(table, static_cast<Index>(i), hats);
    double sum = intercept;
    for (const AnovaBlock& block : blocks)
      for_each_weight(block, hats.data(), [&](Index coefficient, double weight) {
        sum += weight * block.values[static_cast<std::size_t>(coefficient)];
      });
    predictions[i] = sum;
  }
}

void AnovaModel::predict_variances(const ColumnTable& table, std::span<double> variances) const {
  const Index width = posterior.root.rows();
  const auto count = static_cast<Index>(variances.size());
  // Rows per product with T. Each product reads T once; 512 rows suffice for the rate of matrix products.
  constexpr Index block_rows = 512;
  RowMajorMatrix<double> directions(std::min(block_rows, count), width);
  RowMajorMatrix<double> scaled(directions.rows(), width);
  std::vector<HatWeights> hats;
  for (Index first = 0; first < count; first += block_rows) {
    const Index rows = std::min(block_rows, count - first);
    for (Index i = 0; i < rows; ++i) {
      evaluate_axes(table, first + i, hats);
      directions.row(i) = -posterior.center.transpose();
      Index offset = 0;
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        const RowMajorMatrix<double>& factor = posterior.factors[b];
        for_each_weight(blocks[b], hats.data(), [&](Index coefficient, double weight) {
          directions.row(i).segment(offset, factor.cols()) += weight * factor.row(coefficient);
        });
        offset += factor.cols();
      }
    }
    // T is lower triangular: a strip of its rows is 0 behind the diagonal.
    constexpr Index strip = 256;
    for (Index top = 0; top < width; top += strip) {
      const Index height = std::min(strip, width - top);
      gemm<double>(rows, height, top + height, 1, {directions.data(), width},
                   {posterior.root.data() + top * width, width, Operation::transpose}, 0, scaled.data() + top, width);
    }
    for (Index i = 0; i < rows; ++i)
      variances[static_cast<std::size_t>(first + i)] = scaled.row(i).squaredNorm() + posterior.intercept_variance;
  }
}

void AnovaModel::predict_noise(const ColumnTable& table, std::span<double> variances) const {
  std::fill(variances.begin(), variances.end(), posterior.noise_variance);
  if (log_noise.is_zero()) return;
  std::vector<double> logs(variances.size());
  ColumnTable extended = table;
  ColumnTable::Column& predictions = extended.columns.emplace_back();
  predictions.values.resize(variances.size());
  predict(table, predictions.values);
  log_noise.predict(extended, logs);
  for (std::size_t i = 0; i < logs.size(); ++i) variances[i] *= std::exp(logs[i]);
}

bool AnovaFunctions::is_finite() const {
  return std::isfinite(intercept) && std::all_of(blocks.begin(), blocks.end(), [](const AnovaBlock& block) {
           return as_vector(block.values).allFinite() && as_vector(block.deviations).allFinite();
         });
}

}  // namespace dyad
