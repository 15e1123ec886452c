#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// The indices [first, first + count).
struct IndexRange {
  Index first;
  Index count;
};

/// Thread pool. The calling thread is worker 0. The first run() starts the other threads. Between tasks they spin
/// briefly before they block. Not thread-safe: only one thread at a time may call run() or split().
class ThreadPool {
 public:
  /// Upper limit for the number of threads. OpenBLAS has 2 MAX_THREADS buffers for concurrent callers (common.h:
  /// NUM_BUFFERS), and Debian 12 builds it with MAX_THREADS = 64.
  static constexpr int max_threads = 128;

  /// Throws std::invalid_argument unless 0 <= threads <= max_threads.
  static void require_valid_count(int threads);

  /// Number of threads of ThreadPool(threads): `threads`, or for 0 one per core and at most `max_threads`.
  static int resolve_count(int threads);

  /// `threads`: number of workers; 0: one per core.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Number of workers, including the calling thread.
  [[nodiscard]] int count() const { return count_; }

  /// Calls task(worker) once on every worker and waits for all of them. Rethrows the first exception of the task.
  /// Throws std::runtime_error if the threads cannot be started.
  void run(const std::function<void(int worker)>& task);

  /// Splits [0, total) into one range of nearly equal size per worker and calls task(worker, range). The ranges depend
  /// only on `total` and the number of threads, so that floating-point sums are reproducible.
  void split(Index total, const std::function<void(int worker, IndexRange range)>& task);

 private:
  void start();
  void stop();
  /// Loop of a thread: waits for each run() and calls work().
  void run_worker(int worker);
  /// Runs the current task, stores its exception, and decrements busy_.
  void work(int worker);

  int count_;
  std::mutex mutex_;                                ///< protects failure_
  const std::function<void(int)>* task_ = nullptr;  ///< task of the current run(); not owned
  std::atomic<long> round_ = 0;                     ///< incremented by each run() and by stop()
  std::atomic<int> busy_ = 0;                       ///< workers that have not finished the current task
  std::atomic<bool> stopping_ = false;
  std::exception_ptr failure_;        ///< first exception of the current task
  std::vector<std::thread> threads_;  ///< workers 1, 2, ...
};

}  // namespace dyad
