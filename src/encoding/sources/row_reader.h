#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "encoding/sources/row_stream.h"

namespace dyad {

/// Reads and encodes rows in a separate thread, at most a few blocks ahead of the caller. Rows in memory that fit into
/// one block are read in the caller's thread. The partition of the rows into blocks does not depend on timing.
/// next() and stop() must be called from one thread.
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
    std::function<bool()> interrupted{};  ///< polled by next() while it waits; empty: no interruption
    bool reads_ahead = true;              ///< false: rows in memory are always read in the caller's thread
  };

  /// Does not own `map`, which must outlive the reader. The reader's thread modifies it. The caller may use it only
  /// after stop(), and between receiving one of these blocks and the next call of next(): the first block, a block that
  /// ends a checkpoint interval, and a block after which the task is provisional (Target::is_task_provisional()).
  /// Throws std::invalid_argument or DataError if a file cannot be opened or if options contradict each other.
  RowReader(FeatureMap& map, Options options);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// Replaces `block` by the next rows. An exception in the reader's thread is rethrown after all earlier blocks
  /// have been returned.
  Next next(RowBlock<Scalar>& block);
  /// Ends the reader's thread. Blocks that it has completed remain available.
  void stop();

 private:
  void read_all();
  bool fill(RowBlock<double>& block);
  bool deliver(RowBlock<double>& block);

  Options options_;
  FeatureMap& map_;
  std::atomic<bool> is_stopping_ = false;
  std::unique_ptr<RowStream> stream_;
  Index rows_;                  ///< rows read so far, including those of earlier runs
  Index grouped_features_ = 0;  ///< number of features whose groups have been passed on; see RowBlock
  const bool has_thread_;
  RowBlock<double> encoded_;  ///< the block that fill() writes
  std::mutex mutex_;
  std::condition_variable changed_;     ///< signals a change of the members below or of is_stopping_
  std::deque<RowBlock<Scalar>> ready_;  ///< blocks for next()
  std::deque<RowBlock<Scalar>> spare_;  ///< blocks whose memory is used again
  bool is_first_ = true;                ///< the next block is the first one
  bool is_requested_ = false;           ///< next() waits for a block
  bool has_ended_ = false;              ///< the reader's thread has ended
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace dyad
