#include "base/thread_pool.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace dyad {
namespace {

/// Waits until `value` differs from `old`. Blocking and waking a thread takes longer than a task on a small block of
/// rows; therefore the value is polled first. yield() lets other threads use the core meanwhile.
template <typename Value>
void wait_while(const std::atomic<Value>& value, Value old) {
  // More polls reduce the latency of short tasks, and use more CPU time of idle workers. Sensitivity:
  // docs/constants.md.
  constexpr int polls_before_blocking = 200;
  for (int poll = 0; poll < polls_before_blocking; ++poll) {
    if (value.load(std::memory_order_acquire) != old) return;
    std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

void ThreadPool::require_valid_count(int threads) {
  if (threads < 0 || threads > max_threads)
    throw std::invalid_argument("threads must lie in [0, " + std::to_string(max_threads) + "] (0: all cores), got " +
                                std::to_string(threads));
}

int ThreadPool::resolve_count(int threads) {
  return threads > 0 ? threads : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, max_threads);
}

ThreadPool::ThreadPool(int threads) : count_(resolve_count(threads)) {}

void ThreadPool::start() {
  stopping_ = false;
  round_ = 0;
  try {
    for (int worker = 1; worker < count_; ++worker) threads_.emplace_back([this, worker] { run_worker(worker); });
  } catch (...) {
    const std::size_t running = threads_.size() + 1;
    stop();
    throw std::runtime_error("cannot start " + std::to_string(count_) + " threads: the system started only " +
                             std::to_string(running) + " (reduce threads)");
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadPool::run(const std::function<void(int)>& task) {
  if (threads_.empty() && count_ > 1) start();
  task_ = &task;
  busy_ = count_;
  failure_ = nullptr;
  ++round_;
  round_.notify_all();
  work(0);
  for (int busy = busy_; busy > 0; busy = busy_) wait_while(busy_, busy);
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::split(Index total, const std::function<void(int, IndexRange)>& task) {
  run([&](int worker) {
    const Index first = total * worker / count_;
    const Index last = total * (worker + 1) / count_;
    task(worker, {first, last - first});
  });
}

void ThreadPool::run_worker(int worker) {
  for (long last_round = 0;; ++last_round) {
    wait_while(round_, last_round);
    if (stopping_) return;
    work(worker);
  }
}

void ThreadPool::work(int worker) {
  try {
    (*task_)(worker);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  --busy_;
  busy_.notify_one();
}

}  // namespace dyad
