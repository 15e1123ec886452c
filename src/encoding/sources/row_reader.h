#pragma once

#include <any>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "encoding/sources/row_stream.h"
#include "encoding/sources/text_stream.h"

namespace dyad {

/// Reads and encodes rows in several threads, at most a few blocks ahead of the caller. The caller's thread takes part
/// in next() while no block is complete. One thread at a time reads and decompresses text, any number of threads parse
/// and encode chunks of it, and one thread at a time appends the encoded rows to blocks, in order. The blocks and the
/// map do not depend on the number of threads or on timing. next() and stop() must be called from one thread.
template <typename Scalar>
class RowReader {
 public:
  enum class Next { block, end, interrupted };

  struct Options {
    DataOptions data{};
    ColumnOptions columns{};
    TableEncoder::Targets targets = TableEncoder::Targets::needed;
    TableEncoder::UnknownFeatures unknown = TableEncoder::UnknownFeatures::add;
    Index min_feature_count = 1;  ///< as in RowStreamOptions
    /// In rows. Blocks end at multiples of the interval, where the reader waits for next(). 0: no checkpoints.
    Index checkpoint_interval = 0;
    Index rows_before = 0;                ///< rows of earlier runs, which count towards the checkpoint interval
    std::function<bool()> interrupted{};  ///< polled by next() while it waits or reads; empty: no interruption
    bool reads_ahead = true;              ///< false: rows in memory are always read in the caller's thread
    int threads = 0;                      ///< including the caller's thread; 0: one per core
    /// Called for each block, in several threads at the same time; its result is passed to next(). Empty: none.
    std::function<std::any(const RowBlock<Scalar>&)> process{};
    std::size_t block_bytes = Input::default_block_bytes;  ///< as Input::block_bytes
  };

  /// Does not own `map`, which must outlive the reader. Threads of the reader modify it. The caller may use it only
  /// after stop(), and between receiving one of these blocks and the next call of next(): the first block, a block that
  /// ends a checkpoint interval, and a block after which the task is provisional (Target::is_task_provisional()).
  /// Throws std::invalid_argument or DataError if a file cannot be opened or if options contradict each other.
  RowReader(FeatureMap& map, Options options);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// Replaces `block` by the next rows, and `result` by the result of Options::process. An exception in another thread
  /// is rethrown after all earlier blocks have been returned.
  Next next(RowBlock<Scalar>& block, std::any& result);
  Next next(RowBlock<Scalar>& block) {
    std::any ignored;
    return next(block, ignored);
  }
  /// Ends the threads of the reader. Blocks that they have completed remain available.
  void stop();

  /// True if the caller's thread is the only one.
  [[nodiscard]] bool is_single_threaded() const { return max_helpers_ == 0; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class State { waiting, running, done };

  /// A chunk of text and whether it is parsed.
  struct ParseTask {
    TextChunk chunk;
    State state = State::waiting;
  };
  /// A complete block and whether it is processed.
  struct ReadyBlock {
    RowBlock<Scalar> block;
    bool is_exclusive = false;  ///< the caller may use the map after receiving the block
    State state = State::waiting;
    std::any result;
    std::exception_ptr failure;  ///< of Options::process
  };

  void run_helper();
  void add_helper();
  /// Runs one task, if one is available, without the lock. Returns false if there was none.
  bool run_task(Lock& lock, bool is_caller);
  void process(Lock& lock, ReadyBlock& ready);
  bool can_read(bool is_caller) const;
  void read(Lock& lock);
  void parse(Lock& lock, ParseTask& task);
  bool can_append() const;
  void append(Lock& lock);
  /// Appends rows to `encoded_`, from the first parsed chunk if there is one. Returns true if the block is complete.
  bool append_rows(Lock& lock);
  bool append_chunk(ParseTask& task);
  [[nodiscard]] BlockLimits next_limits() const;
  void complete(Lock& lock);
  /// Starts parsing ahead, if the stream allows it.
  void start_parsing();
  /// Ends a pause in which the caller could use the map.
  void resume();
  bool is_stop_requested();

  Options options_;
  FeatureMap& map_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<std::thread::id> caller_{};      ///< thread of next(), the only one that polls Options::interrupted
  std::atomic<bool> was_interrupted_ = false;  ///< while the thread of next() was reading
  std::unique_ptr<RowStream> stream_;
  TextStream* const text_;  ///< nullptr: RowStream::fill() makes the blocks
  std::size_t max_helpers_;
  std::size_t max_chunks_;
  std::size_t max_ready_;

  // Used by the thread that appends.
  Index rows_;                     ///< rows read so far, including those of earlier runs
  Index grouped_features_ = 0;     ///< number of features whose groups have been passed on; see RowBlock
  RowBlock<double> encoded_;       ///< the block that is being made
  BlockLimits limits_;             ///< of `encoded_`
  bool is_block_started_ = false;  ///< `encoded_` is a part of a block

  std::mutex mutex_;
  std::condition_variable changed_;                       ///< signals a change of the members below or of is_stopping_
  std::deque<std::unique_ptr<ParseTask>> chunks_;         ///< chunks of text, in order
  std::vector<std::unique_ptr<ParseTask>> spare_chunks_;  ///< chunks whose memory is used again
  std::deque<std::unique_ptr<ReadyBlock>> ready_;         ///< blocks for next()
  std::vector<RowBlock<Scalar>> spare_blocks_;            ///< blocks whose memory is used again
  bool parses_ahead_ = false;                             ///< chunks_ is used
  bool is_reading_ = false;
  bool is_appending_ = false;
  int running_parses_ = 0;
  bool has_read_all_ = false;
  bool is_first_ = true;        ///< the next block is the first one
  bool is_paused_ = false;      ///< until next(), the caller may use the map
  Index clipping_changes_ = 0;  ///< FeatureMap::clipping_changes() at the start of the pause
  bool has_ended_ = false;      ///< no block follows
  std::exception_ptr failure_;
  std::vector<std::thread> helpers_;
};

}  // namespace dyad
