#include "base/workers.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace dyad {

void Workers::require_possible(int threads) {
  if (threads < 0 || threads > most)
    throw std::invalid_argument("threads must lie in [0, " + std::to_string(most) + "] (0: all cores), got " +
                                std::to_string(threads));
}

int Workers::count_for(int threads) {
  return threads > 0 ? threads : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most);
}

Workers::Workers(int threads) : count_(count_for(threads)) {
  try {
    for (int worker = 1; worker < count_; ++worker) threads_.emplace_back([this, worker] { sleep_and_work(worker); });
  } catch (...) {
    stop();
    throw std::runtime_error("no more threads can be started: " + std::to_string(threads_.size() + 1) + " of " +
                             std::to_string(count_) + " are running; ask for fewer");
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  started_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(const std::function<void(int)>& task) {
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    busy_ = count_;
    failure_ = nullptr;
    ++round_;
  }
  started_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void Workers::split(Index total, const std::function<void(int, Share)>& task) {
  run([&](int worker) {
    const Index first = total * worker / count_;
    const Index last = total * (worker + 1) / count_;
    task(worker, {first, last - first});
  });
}

void Workers::sleep_and_work(int worker) {
  long seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      started_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
    }
    work(worker);
  }
}

void Workers::work(int worker) {
  std::exception_ptr failure;
  try {
    (*task_)(worker);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (failure && !failure_) failure_ = failure;
  if (--busy_ == 0) finished_.notify_one();
}

}  // namespace dyad
