#include "training/anova_comparison.h"

#include <algorithm>
#include <vector>

#include "encoding/column_reader.h"

namespace dyad {
namespace {

/// Rows that are converted to columns at once; limits the memory.
constexpr Index comparison_block_rows = 8192;

/// Calls visit(block, index of its first row) for consecutive blocks of rows.
template <typename Scalar, typename Visit>
void for_each_block(const Rows<Scalar>& rows, Visit&& visit) {
  for (Index first = 0; first < rows.count(); first += comparison_block_rows)
    visit(rows.slice(first, std::min(comparison_block_rows, rows.count() - first)), first);
}

}  // namespace

template <typename Scalar>
void fit_anova_rows(AnovaTraining<Scalar>& training, const Rows<Scalar>& rows) {
  std::vector<double> unused;
  for_each_block(rows, [&](const Rows<Scalar>& block, Index) {
    unused.resize(static_cast<std::size_t>(block.count()));
    training.learn(block, unused);
  });
  training.finish_pass();
}

template <typename Scalar>
double held_out_anova_loss(const Rows<Scalar>& rows, std::span<const std::uint8_t> fold_of, Index folds,
                           const FeatureMap& map, const MakeAnova<Scalar>& make) {
  const ColumnReader reader(map);
  double sum = 0;
  double weight = 0;
  for (Index fold = 0; fold < folds; ++fold) {
    const auto training = make();
    fit_anova_rows(*training, rows.without(fold_of, static_cast<std::uint8_t>(fold)));
    const AnovaModel& model = *training->anova();
    for_each_block(rows, [&](const Rows<Scalar>& block, Index first) {
      ColumnTable table = reader.empty_table();
      reader.append(block, table);
      std::vector<double> predictions(static_cast<std::size_t>(block.count()));
      model.predict(table, predictions);
      for (Index i = 0; i < block.count(); ++i) {
        if (fold_of[static_cast<std::size_t>(first + i)] != fold) continue;
        const auto row_weight = static_cast<double>(block.weight(i));
        const auto at = static_cast<std::size_t>(i);
        if (row_weight > 0)
          sum += row_weight * map.target.score(static_cast<double>(block.targets()[at]), predictions[at]);
        weight += row_weight;
      }
    });
  }
  return sum / weight;
}

template void fit_anova_rows(AnovaTraining<float>&, const Rows<float>&);
template void fit_anova_rows(AnovaTraining<double>&, const Rows<double>&);
template double held_out_anova_loss(const Rows<float>&, std::span<const std::uint8_t>, Index, const FeatureMap&,
                                    const MakeAnova<float>&);
template double held_out_anova_loss(const Rows<double>&, std::span<const std::uint8_t>, Index, const FeatureMap&,
                                    const MakeAnova<double>&);

}  // namespace dyad
