#include "training/validation_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <dyad/error.h>

#include "base/private_file.h"
#include "base/temporary_value.h"
#include "base/thread_pool.h"
#include "encoding/sources/row_reader.h"
#include "inference/block_predictor.h"
#include "inference/error_bars.h"
#include "inference/metrics.h"

namespace dyad {
namespace {

/// Largest share of `TrainOptions::memory` for validation rows cached in memory; larger caches move to disk. copy()
/// needs the same amount again. Sensitivity: docs/constants.md.
constexpr double max_validation_cache_share = 0.125;

}  // namespace

/// Whether the cached rows equal those that reading the file with this map would give.
template <typename Scalar>
bool ValidationRows<Scalar>::is_current(const FeatureMap& map) const {
  const Target& target = map.target;
  return rows_ && target.task == target_.task && target.negative == target_.negative &&
         target.positive == target_.positive && target.scaling.scale == target_.scaling.scale &&
         (map.seen_count() == features_ || (!has_unknown_cells_ && (rows_->is_sparse() || map.dim() == dim_)));
}

template <typename Scalar>
void ValidationRows<Scalar>::read(FeatureMap& map) {
  if (options_.validation_path.empty()) return;
  rows_.reset();
  if (options_.memory > 0) rows_.emplace();
  has_unknown_cells_ = false;
  failure_ = nullptr;
  // Targets may lie outside of a given range, and these rows do not determine the task.
  const TemporaryValue<bool> without_range(map.target.is_range_given, false);
  const TemporaryValue<bool> with_known_task(map.target.is_task_inferred, false);
  RowReader<double> reader(map, {.data = options_.validation_data(),
                                 .columns = {},
                                 .unknown = TableEncoder::UnknownFeatures::ignore,
                                 .interrupted = interrupted_,
                                 .threads = options_.threads});
  RowBlock<double> block;
  Index count = 0;
  auto next = reader.next(block);
  for (; next == RowReader<double>::Next::block; next = reader.next(block)) {
    count += block.count();
    cache_rows(block);
  }
  target_ = map.target;
  features_ = map.seen_count();
  dim_ = map.dim();
  if (next == RowReader<double>::Next::interrupted)
    rows_.reset();
  else if (count == 0)
    throw DataError(options_.validation_path, 0, 0, "the validation file contains no rows; expected at least one row");
}

template <typename Scalar>
void ValidationRows<Scalar>::cache_rows(const RowBlock<double>& block) {
  const auto fits = [](double value) { return std::isfinite(static_cast<Scalar>(value)); };
  for (const auto* values : {&block.values, &block.targets, &block.weights})
    if (!std::all_of(values->begin(), values->end(), fits))
      throw DataError(block.file, block.lines.front(), 0,
                      "a value in the " + std::to_string(block.count()) +
                          " rows from this line on is too large for single precision; set `precision` to double");
  if (!rows_) return;
  has_unknown_cells_ = has_unknown_cells_ || !block.unknown_cells.empty();
  try {
    rows_->append(block.view(), block.left_dim);
    if (!rows_->is_on_disk() && rows_->bytes() > max_validation_cache_share * options_.memory)
      rows_->move_to_disk(temporary_folder(options_.model_path));
  } catch (const PrivateFileError&) {
    failure_ = std::current_exception();
    rows_.reset();
  }
}

template <typename Scalar>
std::optional<RowCache<Scalar>> ValidationRows<Scalar>::copy(FeatureMap& map) {
  if (!failure_ && !is_current(map)) read(map);
  if (failure_) std::rethrow_exception(failure_);
  if (!rows_ || rows_->count() == 0) return std::nullopt;
  std::optional<RowCache<Scalar>> result(std::in_place);
  if (rows_->is_on_disk()) result->move_to_disk(rows_->folder());
  result->append(rows_->view(map.dim(), map.left_dim()), map.left_dim());
  return result;
}

template <typename Scalar>
std::optional<Metrics> ValidationRows<Scalar>::measure(ModelFile file, ThreadPool& pool) {
  if (interrupted_ && interrupted_()) return std::nullopt;
  if (is_current(file.features) && !ErrorBars::predicts_by_posterior(file))
    if (std::optional<Metrics> metrics = measure_cached(file, pool)) return metrics;
  PredictOptions options;
  options.data = options_.validation_data();
  options.threads = options_.threads;
  return evaluate(std::move(file), options, {interrupted_}).metrics;
}

/// Returns null if a prediction is not finite or all weights are 0. The caller then uses evaluate(), which reports it.
template <typename Scalar>
std::optional<Metrics> ValidationRows<Scalar>::measure_cached(const ModelFile& file, ThreadPool& pool) {
  const Target& target = file.features.target;
  const Rows<double> rows = rows_->view(file.features.dim(), file.features.left_dim());
  std::vector<double> values(static_cast<std::size_t>(rows.count()));
  pool.split(rows.count(), [&](int, IndexRange share) {
    const auto first = static_cast<std::size_t>(share.first);
    file.predict(rows.slice(share.first, share.count),
                 std::span(values).subspan(first, static_cast<std::size_t>(share.count)));
  });
  MetricSums sums(target.task);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = target.predicted(values[i]);
    if (!std::isfinite(value)) return std::nullopt;
    sums.add(target.observed(rows.targets()[i]), value, rows.weight(static_cast<Index>(i)));
  }
  if (sums.weight() == 0) return std::nullopt;
  return sums.metrics();
}

template class ValidationRows<float>;
template class ValidationRows<double>;

}  // namespace dyad
