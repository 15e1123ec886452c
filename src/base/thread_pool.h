#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// A consecutive share of [0, total).
struct Share {
  Index first;
  Index count;
};

/// Thread pool. The caller is worker 0. The other threads are started by the first run() and spin briefly for the next
/// one before they block. Used by one thread at a time.
class ThreadPool {
 public:
  /// More would be more than OpenBLAS has buffers for.
  static constexpr int most = 128;

  /// Throws std::invalid_argument for a number of threads that no one can ask for.
  static void require_possible(int threads);

  /// How many a number that was asked for stands for; 0: one per core.
  static int count_for(int threads);

  /// 0: one per core.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int count() const { return count_; }

  /// Calls task(worker) once on every worker and waits. The first exception is thrown again here.
  void run(const std::function<void(int worker)>& task);

  /// Calls task(worker, share) with [0, total) cut into one even share per worker: always the same share for the same
  /// number of threads, so that sums are reproducible.
  void split(Index total, const std::function<void(int worker, Share share)>& task);

 private:
  void start();
  void stop();
  void sleep_and_work(int worker);
  void work(int worker);

  int count_;
  std::mutex mutex_;  ///< of the failure
  const std::function<void(int)>* task_ = nullptr;
  std::atomic<long> round_ = 0;
  std::atomic<int> busy_ = 0;
  std::atomic<bool> stopping_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace dyad
