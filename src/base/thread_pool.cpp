#include "base/thread_pool.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace dyad {
namespace {

/// Until `value` is another one. To sleep and to be woken takes longer than a small block of rows, so it is looked at
/// for a moment before; whoever else wants the core gets it meanwhile.
template <typename Value>
void wait_while(const std::atomic<Value>& value, Value old) {
  constexpr int looks = 200;
  for (int look = 0; look < looks; ++look) {
    if (value.load(std::memory_order_acquire) != old) return;
    std::this_thread::yield();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

void ThreadPool::require_possible(int threads) {
  if (threads < 0 || threads > most)
    throw std::invalid_argument("threads must lie in [0, " + std::to_string(most) + "] (0: all cores), got " +
                                std::to_string(threads));
}

int ThreadPool::count_for(int threads) {
  return threads > 0 ? threads : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most);
}

ThreadPool::ThreadPool(int threads) : count_(count_for(threads)) {}

void ThreadPool::start() {
  stopping_ = false;
  round_ = 0;
  try {
    for (int worker = 1; worker < count_; ++worker) threads_.emplace_back([this, worker] { sleep_and_work(worker); });
  } catch (...) {
    const std::size_t running = threads_.size() + 1;
    stop();
    throw std::runtime_error("no more threads can be started: " + std::to_string(running) + " of " +
                             std::to_string(count_) + " are running; ask for fewer");
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

void ThreadPool::split(Index total, const std::function<void(int, Share)>& task) {
  run([&](int worker) {
    const Index first = total * worker / count_;
    const Index last = total * (worker + 1) / count_;
    task(worker, {first, last - first});
  });
}

void ThreadPool::sleep_and_work(int worker) {
  for (long seen = 0;; ++seen) {
    wait_while(round_, seen);
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
