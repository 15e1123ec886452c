// Work in a thread of its own: Python's thread stays free to hear Ctrl-C and to speak.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace dyad::python {

/// Ctrl-C, or an exception of the user's own function, is answered at once, whatever the work is about: what is left of
/// it ends by itself, unheard, and is cleared away by the next job or when Python ends.
class Job {
 public:
  virtual ~Job() = default;

  /// Works until the end. With the GIL, which is released meanwhile. Throws what the work or a message has thrown.
  static void run(const std::shared_ptr<Job>& job);

  /// Waits for all that was left behind; Python calls it before it ends.
  static void finish_all();

 protected:
  virtual void work() = 0;

  /// Asked by the work.
  [[nodiscard]] bool is_stopped() const { return stopped_; }
  /// To be called in Python's thread, soon.
  void tell(std::function<void()> message);

 private:
  void work_and_report();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> messages_;
  bool done_ = false;
  std::exception_ptr failure_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace dyad::python
