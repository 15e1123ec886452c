#include "training/validation_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <dyad/data_error.h>

#include "base/private_file.h"
#include "base/temporary_value.h"
#include "base/thread_pool.h"
#include "encoding/sources/row_reader.h"
#include "inference/metrics.h"
#include "inference/prediction.h"

namespace dyad {

/// Whether reading the file with this map would give the same rows.
template <typename Scalar>
bool ValidationRows<Scalar>::is_current(const FeatureMap& map) const {
  const Target& target = map.target;
  return rows_ && target.task == target_.task && target.negative == target_.negative &&
         target.positive == target_.positive && target.scaling.scale == target_.scaling.scale &&
         (map.seen() == features_ || (!has_unknown_cells_ && (rows_->is_sparse() || map.dim() == dim_)));
}

template <typename Scalar>
void ValidationRows<Scalar>::read(FeatureMap& map) {
  if (options_.validation_path.empty()) return;
  rows_.reset();
  if (options_.memory > 0) rows_.emplace();
  has_unknown_cells_ = false;
  failure_ = nullptr;
  const TemporaryValue<bool> without_range(map.target.range_is_given, false);
  const TemporaryValue<bool> with_known_task(map.target.task_is_open, false);
  RowReader<double> reader(map, {.data = options_.validation_data(),
                                 .columns = {},
                                 .unknown = TableEncoder::Unknown::is_left_out,
                                 .interrupted = interrupted_});
  RowBlock<double> block;
  Index count = 0;
  auto next = reader.next(block);
  for (; next == RowReader<double>::Next::block; next = reader.next(block)) {
    count += block.count();
    keep(block);
  }
  target_ = map.target;
  features_ = map.seen();
  dim_ = map.dim();
  if (next == RowReader<double>::Next::interrupted)
    rows_.reset();
  else if (count == 0)
    throw DataError(options_.validation_path, 0, 0, "there is no row in it, expected rows to measure the model on");
}

template <typename Scalar>
void ValidationRows<Scalar>::keep(const RowBlock<double>& block) {
  const auto fits = [](double number) { return std::isfinite(static_cast<Scalar>(number)); };
  for (const auto* numbers : {&block.values, &block.targets, &block.weights})
    if (!std::all_of(numbers->begin(), numbers->end(), fits))
      throw DataError(block.file, block.lines.front(), 0,
                      "in this row or one of the " + std::to_string(block.count()) +
                          " from it on, a number is too large for single precision; use --precision double");
  if (!rows_) return;
  has_unknown_cells_ = has_unknown_cells_ || !block.unknown_cells.empty();
  try {
    rows_->append(block.view(), block.left_dim);
    // copy() needs as much again.
    if (!rows_->is_on_disk() && rows_->bytes() > options_.memory / 8)
      rows_->move_to_disk(folder_for_private_files(options_.model_path));
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
  if (is_current(file.features))
    if (std::optional<Metrics> metrics = measure_cached(file, pool)) return metrics;
  PredictOptions options;
  options.data = options_.validation_data();
  options.threads = options_.threads;
  return evaluate(std::move(file), options, {interrupted_}).metrics;
}

/// Null if evaluate() is needed for its message about predictions that are not finite, or rows without weight.
template <typename Scalar>
std::optional<Metrics> ValidationRows<Scalar>::measure_cached(const ModelFile& file, ThreadPool& pool) {
  const Target& target = file.features.target;
  const Rows<double> rows = rows_->view(file.features.dim(), file.features.left_dim());
  std::vector<double> values(static_cast<std::size_t>(rows.count()));
  pool.split(rows.count(), [&](int, Share share) {
    const auto first = static_cast<std::size_t>(share.first);
    file.model.predict(rows.slice(share.first, share.count),
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
