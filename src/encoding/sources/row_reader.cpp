#include "encoding/sources/row_reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <dyad/dataset.h>
#include <dyad/error.h>

#include "io/input.h"

namespace dyad {
namespace {

/// Completed blocks that may wait for next(). Sensitivity: docs/constants.md.
constexpr std::size_t max_blocks_ahead = 3;
/// Rows of a block. The first block determines the scales of the columns. Sensitivity: docs/constants.md.
constexpr Index max_block_rows = 4096;
/// Stored entries of a block: 4 MiB of doubles. Sensitivity: docs/constants.md.
constexpr Index max_block_entries = Index{1} << 19;
/// Upper bound on the delay between an interruption and its effect, half of the 100 ms that users perceive as immediate
/// (Nielsen, Usability Engineering, 1993, section 5.5).
constexpr std::chrono::milliseconds interruption_poll_interval{50};

void transfer(RowBlock<double>& from, RowBlock<double>& to) { std::swap(from, to); }

/// Moves a block and rounds its numbers to single precision. Throws DataError for numbers beyond its range.
void transfer(RowBlock<double>& from, RowBlock<float>& to) {
  to.clear();
  to.dim = from.dim;
  to.left_dim = from.left_dim;
  to.is_dense = from.is_dense;
  to.unknown_cells.swap(from.unknown_cells);
  to.new_feature_groups.swap(from.new_feature_groups);
  to.ends_checkpoint_interval = from.ends_checkpoint_interval;
  to.offsets.swap(from.offsets);
  to.columns.swap(from.columns);
  to.file.swap(from.file);
  to.lines.swap(from.lines);
  const auto convert = [&](const std::vector<double>& numbers, std::vector<float>& converted, const char* what) {
    converted.assign(numbers.begin(), numbers.end());
    if (!std::all_of(converted.begin(), converted.end(), [](float number) { return std::isfinite(number); }))
      throw DataError(to.file, to.lines.front(), 0,
                      std::string("one of the ") + std::to_string(to.lines.size()) + " rows from here on has a " +
                          what + " that is too large for single precision; set TrainOptions::precision to double");
  };
  convert(from.values, to.values, "value");
  convert(from.targets, to.targets, "target");
  convert(from.weights, to.weights, "weight");
}

}  // namespace

template <typename Scalar>
RowReader<Scalar>::RowReader(FeatureMap& map, Options options)
    : options_(std::move(options)),
      map_(map),
      rows_(options_.rows_before),
      has_thread_(options_.data.dataset == nullptr ||
                  (options_.reads_ahead && options_.data.dataset->count > max_block_rows)) {
  stream_ = open_rows(map, {options_.data, options_.columns, options_.targets, options_.unknown,
                            options_.min_feature_count, [this] { return is_stopping_.load(); }});
  if (has_thread_) thread_ = std::thread([this] { read_all(); });
}

template <typename Scalar>
RowReader<Scalar>::~RowReader() {
  stop();
}

template <typename Scalar>
void RowReader<Scalar>::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

template <typename Scalar>
void RowReader<Scalar>::read_all() {
  std::exception_ptr failure;
  try {
    while (!is_stopping_ && fill(encoded_))
      if (!deliver(encoded_)) break;
  } catch (const ReadingStopped&) {
    failure = nullptr;
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    failure_ = failure;
  }
  changed_.notify_all();
}

/// Reads the next block. Returns false at the end of the rows.
template <typename Scalar>
bool RowReader<Scalar>::fill(RowBlock<double>& block) {
  BlockLimits limits{max_block_rows, max_block_entries};
  if (options_.checkpoint_interval > 0)
    limits.max_rows = std::min(limits.max_rows, options_.checkpoint_interval - rows_ % options_.checkpoint_interval);
  stream_->fill(block, limits);
  block.new_feature_groups.clear();
  if (options_.unknown == TableEncoder::UnknownFeatures::add) {
    map_.update_values(block);
    if (!map_.is_bilinear())
      for (; grouped_features_ < map_.dim(); ++grouped_features_)
        block.new_feature_groups.push_back(static_cast<std::int32_t>(map_.group_of(grouped_features_)));
  }
  rows_ += block.count();
  block.ends_checkpoint_interval = options_.checkpoint_interval > 0 && rows_ % options_.checkpoint_interval == 0;
  return block.count() > 0;
}

/// Passes a block to next(), and waits after a block that gives the caller access to the map. Returns false after
/// stop().
template <typename Scalar>
bool RowReader<Scalar>::deliver(RowBlock<double>& block) {
  const bool ends_checkpoint_interval = block.ends_checkpoint_interval;
  RowBlock<Scalar> delivered;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      delivered = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  transfer(block, delivered);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_stopping_ || ready_.size() < max_blocks_ahead; });
  ready_.push_back(std::move(delivered));
  changed_.notify_all();
  if (std::exchange(is_first_, false) || ends_checkpoint_interval || map_.target.is_task_provisional()) {
    is_requested_ = false;
    changed_.wait(lock, [&] { return is_stopping_ || (ready_.empty() && is_requested_); });
  }
  return !is_stopping_;
}

template <typename Scalar>
typename RowReader<Scalar>::Next RowReader<Scalar>::next(RowBlock<Scalar>& block) {
  if (!has_thread_) {
    if (options_.interrupted && options_.interrupted()) return Next::interrupted;
    if (!fill(encoded_)) return Next::end;
    transfer(encoded_, block);
    return Next::block;
  }
  std::unique_lock lock(mutex_);
  spare_.push_back(std::move(block));
  while (ready_.empty()) {
    if (has_ended_) {
      if (failure_) std::rethrow_exception(failure_);
      return Next::end;
    }
    if (options_.interrupted && options_.interrupted()) return Next::interrupted;
    is_requested_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, interruption_poll_interval, [&] { return !ready_.empty() || has_ended_; });
  }
  if (options_.interrupted && options_.interrupted()) return Next::interrupted;
  block = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return Next::block;
}

template class RowReader<float>;
template class RowReader<double>;

}  // namespace dyad
