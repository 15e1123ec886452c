#include "encoding/sources/row_reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <dyad/data_error.h>
#include <dyad/memory.h>

#include "io/input.h"

namespace dyad {
namespace {

constexpr std::size_t blocks_ahead = 3;
constexpr Index usual_rows = 4096;
constexpr Index most_entries = Index{1} << 19;
constexpr std::chrono::milliseconds look_around{50};

void give(RowBlock<double>& from, RowBlock<double>& to) { std::swap(from, to); }

void give(RowBlock<double>& from, RowBlock<float>& to) {
  to.clear();
  to.dim = from.dim;
  to.left_dim = from.left_dim;
  to.dense = from.dense;
  to.unknown_cells.swap(from.unknown_cells);
  to.ends_stretch = from.ends_stretch;
  to.offsets.swap(from.offsets);
  to.columns.swap(from.columns);
  to.file.swap(from.file);
  to.lines.swap(from.lines);
  const auto convert = [&](const std::vector<double>& numbers, std::vector<float>& converted, const char* what) {
    converted.assign(numbers.begin(), numbers.end());
    if (!std::all_of(converted.begin(), converted.end(), [](float number) { return std::isfinite(number); }))
      throw DataError(to.file, to.lines.front(), 0,
                      std::string("in this row or one of the ") + std::to_string(to.lines.size()) + " from it on, a " +
                          what + " is too large for single precision; use --precision double");
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
      has_thread_(options_.data.memory == nullptr ||
                  (options_.reads_ahead && options_.data.memory->count > usual_rows)) {
  stream_ = open_rows(map, {options_.data, options_.columns, options_.targets, options_.unknown, options_.room,
                            [this] { return stopping_.load(); }});
  if (has_thread_) thread_ = std::thread([this] { read(); });
}

template <typename Scalar>
RowReader<Scalar>::~RowReader() {
  stop();
}

template <typename Scalar>
void RowReader<Scalar>::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

template <typename Scalar>
void RowReader<Scalar>::read() {
  std::exception_ptr failure;
  try {
    while (!stopping_ && fill(filled_))
      if (!deliver(filled_)) break;
  } catch (const ReadingStopped&) {
    failure = nullptr;
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    failure_ = failure;
  }
  changed_.notify_all();
}

/// False at the end of the rows.
template <typename Scalar>
bool RowReader<Scalar>::fill(RowBlock<double>& block) {
  BlockLimits limits{usual_rows, most_entries};
  if (options_.stretch > 0) limits.rows = std::min(limits.rows, options_.stretch - rows_ % options_.stretch);
  stream_->fill(block, limits);
  if (options_.unknown == TableEncoder::Unknown::grows) map_.update_values(block);
  rows_ += block.count();
  block.ends_stretch = options_.stretch > 0 && rows_ % options_.stretch == 0;
  return block.count() > 0;
}

/// False where the reading is to stop.
template <typename Scalar>
bool RowReader<Scalar>::deliver(RowBlock<double>& block) {
  const bool ends_stretch = block.ends_stretch;
  RowBlock<Scalar> own;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      own = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  give(block, own);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || ready_.size() < blocks_ahead; });
  ready_.push_back(std::move(own));
  changed_.notify_all();
  if (std::exchange(is_first_, false) || ends_stretch || map_.target.is_provisional()) {
    asking_ = false;
    changed_.wait(lock, [&] { return stopping_ || (ready_.empty() && asking_); });
  }
  return !stopping_;
}

template <typename Scalar>
typename RowReader<Scalar>::Next RowReader<Scalar>::next(RowBlock<Scalar>& block) {
  if (!has_thread_) {
    if (options_.interrupted && options_.interrupted()) return Next::interrupted;
    if (!fill(filled_)) return Next::end;
    give(filled_, block);
    return Next::block;
  }
  std::unique_lock lock(mutex_);
  spare_.push_back(std::move(block));
  while (ready_.empty()) {
    if (ended_) {
      if (failure_) std::rethrow_exception(failure_);
      return Next::end;
    }
    if (options_.interrupted && options_.interrupted()) return Next::interrupted;
    asking_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, look_around, [&] { return !ready_.empty() || ended_; });
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
