#include "encoding/sources/row_reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include <dyad/dataset.h>
#include <dyad/error.h>

#include "base/thread_pool.h"
#include "io/input.h"

namespace dyad {
namespace {

/// Completed blocks that may wait for next(). Sensitivity: docs/constants.md.
constexpr std::size_t max_blocks_ahead = 3;
/// Chunks of text that may wait, per thread: one that is parsed, and one that the thread parses next.
constexpr std::size_t chunks_per_thread = 2;
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
      stream_(
          open_rows(map, {options_.data, options_.columns, options_.targets, options_.unknown,
                          options_.min_feature_count, [this] { return is_stop_requested(); }, options_.block_bytes})),
      text_(stream_->text()),
      rows_(options_.rows_before) {
  const auto threads = static_cast<std::size_t>(ThreadPool::resolve_count(options_.threads));
  const bool uses_threads =
      options_.data.dataset == nullptr || (options_.reads_ahead && options_.data.dataset->count > max_block_rows);
  const bool is_parallel = text_ != nullptr || options_.process;
  max_helpers_ = !uses_threads ? 0 : is_parallel ? threads - 1 : std::min<std::size_t>(threads - 1, 1);
  max_chunks_ = chunks_per_thread * threads + 1;
  max_ready_ = options_.process ? std::max(max_blocks_ahead, threads + 1) : max_blocks_ahead;
  const Lock lock(mutex_);  // the first helper may add others
  if (max_helpers_ > 0) add_helper();
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
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
  has_ended_ = true;
}

template <typename Scalar>
bool RowReader<Scalar>::is_stop_requested() {
  if (is_stopping_) return true;
  if (caller_ != std::this_thread::get_id() || !options_.interrupted || !options_.interrupted()) return false;
  was_interrupted_ = true;
  return true;
}

template <typename Scalar>
void RowReader<Scalar>::add_helper() {
  helpers_.emplace_back([this] { run_helper(); });
}

template <typename Scalar>
void RowReader<Scalar>::run_helper() {
  Lock lock(mutex_);
  while (!is_stopping_) {
    try {
      if (!run_task(lock, false)) changed_.wait(lock);
    } catch (...) {  // insufficient memory
      if (!lock.owns_lock()) lock.lock();
      failure_ = std::current_exception();
      has_ended_ = true;
      changed_.notify_all();
    }
  }
}

template <typename Scalar>
bool RowReader<Scalar>::run_task(Lock& lock, bool is_caller) {
  if (options_.process)
    for (const auto& ready : ready_)
      if (ready->state == State::waiting) {
        process(lock, *ready);
        return true;
      }
  if (can_append()) {
    append(lock);
    return true;
  }
  if (!parses_ahead_ || has_ended_) return false;
  // Helpers read first, so that text is available for all threads. The caller parses first, because reading may wait.
  const auto waiting =
      std::find_if(chunks_.begin(), chunks_.end(), [](const auto& task) { return task->state == State::waiting; });
  const bool can_parse = !is_paused_ && waiting != chunks_.end();
  if (can_read(is_caller) && !(is_caller && can_parse)) {
    read(lock);
    return true;
  }
  if (!can_parse) return false;
  parse(lock, **waiting);
  return true;
}

template <typename Scalar>
void RowReader<Scalar>::process(Lock& lock, ReadyBlock& ready) {
  ready.state = State::running;
  lock.unlock();
  try {
    ready.result = options_.process(ready.block);
  } catch (...) {
    ready.failure = std::current_exception();
  }
  lock.lock();
  ready.state = State::done;
  changed_.notify_all();
}

template <typename Scalar>
bool RowReader<Scalar>::can_read(bool is_caller) const {
  return !is_reading_ && !has_read_all_ && chunks_.size() < max_chunks_ &&
         !(is_caller && max_helpers_ > 0 && text_->may_wait());
}

template <typename Scalar>
void RowReader<Scalar>::read(Lock& lock) {
  is_reading_ = true;
  std::unique_ptr<ParseTask> task;
  if (spare_chunks_.empty()) {
    task = std::make_unique<ParseTask>();
  } else {
    task = std::move(spare_chunks_.back());
    spare_chunks_.pop_back();
  }
  lock.unlock();
  bool has_read = false;
  bool is_stopped = false;
  try {
    has_read = text_->read(task->chunk);
  } catch (const ReadingStopped&) {
    is_stopped = true;
  }
  lock.lock();
  is_reading_ = false;
  if (has_read) {
    task->state = task->chunk.lines.text.empty() ? State::done : State::waiting;
    chunks_.push_back(std::move(task));
    if (!is_stopping_ && helpers_.size() < max_helpers_ && chunks_.size() > helpers_.size()) {
      try {
        add_helper();
      } catch (const std::system_error&) {
        // The system limits the number of threads. The existing ones do the work.
      }
    }
  } else {
    has_read_all_ = true;
    if (is_stopped) has_ended_ = true;
  }
  changed_.notify_all();
}

template <typename Scalar>
void RowReader<Scalar>::parse(Lock& lock, ParseTask& task) {
  task.state = State::running;
  ++running_parses_;
  lock.unlock();
  constexpr Index unlimited = std::numeric_limits<Index>::max();
  text_->parse(task.chunk, {unlimited, unlimited});
  lock.lock();
  --running_parses_;
  task.state = State::done;
  changed_.notify_all();
}

template <typename Scalar>
bool RowReader<Scalar>::can_append() const {
  if (is_appending_ || has_ended_ || is_paused_ || ready_.size() >= max_ready_) return false;
  return !parses_ahead_ || (chunks_.empty() ? has_read_all_ : chunks_.front()->state == State::done);
}

/// Appends rows to the current block. Passes it to next() if it is complete, and pauses after a block that gives the
/// caller access to the map.
template <typename Scalar>
void RowReader<Scalar>::append(Lock& lock) {
  is_appending_ = true;
  try {
    if (append_rows(lock)) complete(lock);
  } catch (const ReadingStopped&) {
    if (!lock.owns_lock()) lock.lock();
    has_ended_ = true;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    failure_ = std::current_exception();
    has_ended_ = true;
  }
  is_appending_ = false;
  changed_.notify_all();
}

template <typename Scalar>
bool RowReader<Scalar>::append_rows(Lock& lock) {
  if (!parses_ahead_) {
    start_parsing();
    if (parses_ahead_) return false;
    lock.unlock();
    stream_->fill(encoded_, next_limits());
    lock.lock();
    return true;
  }
  if (chunks_.empty()) {
    if (!is_block_started_) encoded_.clear();
    lock.unlock();
    if (encoded_.count() > 0) text_->finish(encoded_);
    lock.lock();
    return true;
  }
  ParseTask& task = *chunks_.front();
  lock.unlock();
  const bool is_complete = append_chunk(task);
  lock.lock();
  if (task.chunk.is_exhausted() && !task.chunk.failure) {
    spare_chunks_.push_back(std::move(chunks_.front()));
    chunks_.pop_front();
  }
  return is_complete;
}

template <typename Scalar>
bool RowReader<Scalar>::append_chunk(ParseTask& task) {
  if (!std::exchange(is_block_started_, true)) limits_ = text_->begin(encoded_, next_limits());
  if (text_->append(task.chunk, limits_, encoded_) && !limits_.are_reached_by(encoded_)) return false;
  text_->finish(encoded_);
  return true;
}

template <typename Scalar>
void RowReader<Scalar>::start_parsing() {
  if (text_ == nullptr || !text_->can_parse_ahead()) return;
  parses_ahead_ = true;
  for (TextChunk& chunk : text_->take_chunks()) {
    chunks_.push_back(std::make_unique<ParseTask>());
    chunks_.back()->state = chunk.lines.text.empty() ? State::done : State::waiting;
    chunks_.back()->chunk = std::move(chunk);
  }
}

template <typename Scalar>
BlockLimits RowReader<Scalar>::next_limits() const {
  BlockLimits limits{max_block_rows, max_block_entries};
  if (options_.checkpoint_interval > 0)
    limits.max_rows = std::min(limits.max_rows, options_.checkpoint_interval - rows_ % options_.checkpoint_interval);
  return limits;
}

/// Passes `encoded_` to next(). An empty block is the end.
template <typename Scalar>
void RowReader<Scalar>::complete(Lock& lock) {
  is_block_started_ = false;
  if (encoded_.count() == 0) {
    has_ended_ = true;
    return;
  }
  auto ready = std::make_unique<ReadyBlock>();
  if (!spare_blocks_.empty()) {
    ready->block = std::move(spare_blocks_.back());
    spare_blocks_.pop_back();
  }
  lock.unlock();
  encoded_.new_feature_groups.clear();
  if (options_.unknown == TableEncoder::UnknownFeatures::add) {
    map_.update_values(encoded_);
    if (!map_.is_bilinear())
      for (; grouped_features_ < map_.dim(); ++grouped_features_)
        encoded_.new_feature_groups.push_back(static_cast<std::int32_t>(map_.group_of(grouped_features_)));
  }
  rows_ += encoded_.count();
  encoded_.ends_checkpoint_interval = options_.checkpoint_interval > 0 && rows_ % options_.checkpoint_interval == 0;
  ready->is_exclusive =
      std::exchange(is_first_, false) || encoded_.ends_checkpoint_interval || map_.target.is_task_provisional();
  transfer(encoded_, ready->block);
  lock.lock();
  is_paused_ = ready->is_exclusive;
  clipping_changes_ = map_.clipping_changes();
  ready_.push_back(std::move(ready));
}

template <typename Scalar>
void RowReader<Scalar>::resume() {
  is_paused_ = false;
  if (map_.clipping_changes() == clipping_changes_) return;
  for (const auto& task : chunks_) {  // their numbers are clipped to the old bounds
    task->chunk.unparse();
    if (!task->chunk.lines.text.empty()) task->state = State::waiting;
  }
}

template <typename Scalar>
typename RowReader<Scalar>::Next RowReader<Scalar>::next(RowBlock<Scalar>& block, std::any& result) {
  caller_ = std::this_thread::get_id();
  Lock lock(mutex_);
  if (spare_blocks_.size() < max_ready_) spare_blocks_.push_back(std::move(block));
  if (is_paused_ && ready_.empty()) {
    resume();
    changed_.notify_all();
  }
  const auto is_available = [&] {
    return !ready_.empty() && (!options_.process || ready_.front()->state == State::done) &&
           !(ready_.front()->is_exclusive && running_parses_ > 0);
  };
  while (!is_available()) {
    if (was_interrupted_ || (options_.interrupted && options_.interrupted())) return Next::interrupted;
    if (ready_.empty() && has_ended_) {
      if (failure_) std::rethrow_exception(failure_);
      return Next::end;
    }
    if (!run_task(lock, true)) changed_.wait_for(lock, interruption_poll_interval);
  }
  if (options_.interrupted && options_.interrupted()) return Next::interrupted;
  const std::unique_ptr<ReadyBlock> ready = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  if (ready->failure) std::rethrow_exception(ready->failure);
  block = std::move(ready->block);
  result = std::move(ready->result);
  return Next::block;
}

template class RowReader<float>;
template class RowReader<double>;

}  // namespace dyad
