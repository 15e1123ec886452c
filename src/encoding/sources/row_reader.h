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

/// Reads rows in a thread of its own, at most a few blocks ahead of the consumer. Rows in memory that fit in one block
/// are read by the caller's thread instead. Blocks depend on the rows alone, not on the speed of either thread.
template <typename Scalar>
class RowReader {
 public:
  enum class Next { block, end, interrupted };

  /// The files and their format, of which the caller learns at once where something is wrong with them.
  struct Options {
    DataOptions data{};
    ColumnOptions columns{};
    TableEncoder::Targets targets = TableEncoder::Targets::needed;
    TableEncoder::Unknown unknown = TableEncoder::Unknown::grows;
    Index room = 1;         ///< as in RowStreamOptions
    Index stretch = 0;      ///< above 0: blocks end at every multiple of so many rows, and the reader waits there
    Index rows_before = 0;  ///< rows of earlier runs, which count towards the stretches
    std::function<bool()> interrupted{};  ///< asked while waiting
    bool reads_ahead = true;              ///< false: rows in memory are read by the caller's thread, however many
  };

  /// `map` belongs to the reader's thread, and to the caller only behind the first block, one that ends a stretch and
  /// one after which the task is provisional, until the next is asked for, and after stop().
  RowReader(FeatureMap& map, Options options);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  /// Throws what the reading threw, behind the rows before it.
  Next next(RowBlock<Scalar>& block);
  void stop();

 private:
  void read();
  bool fill(RowBlock<double>& block);
  bool deliver(RowBlock<double>& block);

  Options options_;
  FeatureMap& map_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<RowStream> stream_;
  Index rows_;  ///< read so far, with those of earlier runs
  const bool has_thread_;
  RowBlock<double> filled_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RowBlock<Scalar>> ready_;
  std::deque<RowBlock<Scalar>> spare_;
  bool is_first_ = true;  ///< the next block: the map that it fixes is looked at before it changes again
  bool asking_ = false;
  bool ended_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace dyad
