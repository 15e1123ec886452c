// Background thread for long calls, so that the thread of Python handles signals and callbacks meanwhile.
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

/// Task that runs in its own thread while the calling thread handles signals and callbacks. If Ctrl-C or a callback
/// raises an exception, run() throws immediately and requests the task to stop. The thread of the task may then still
/// run; a later call of run() joins it if it has ended, and finish_all() waits for it.
class Job {
 public:
  virtual ~Job() = default;

  /// Runs the job to its end. Requires the GIL and releases it while waiting. Throws the exceptions of the task, of
  /// signal handlers and of callbacks.
  static void run(const std::shared_ptr<Job>& job);

  /// Waits for the threads of all stopped jobs. Requires the GIL. Registered with Python's atexit.
  static void finish_all();

 protected:
  /// The task. Runs without the GIL, in the thread of the job.
  virtual void execute() = 0;

  /// Whether the task should end. Called by the task.
  [[nodiscard]] bool is_stop_requested() const { return is_stop_requested_; }
  /// Queues a function that the thread of Python calls with the GIL. Called by the task.
  void post(std::function<void()> callback);

 private:
  void execute_and_notify();

  std::mutex mutex_;                 ///< protects callbacks_, is_done_ and failure_
  std::condition_variable changed_;  ///< notified after a change of callbacks_ or is_done_
  std::deque<std::function<void()>> callbacks_;
  bool is_done_ = false;
  std::exception_ptr failure_;  ///< exception of the task
  std::atomic<bool> is_stop_requested_ = false;
  std::thread thread_;
};

}  // namespace dyad::python
