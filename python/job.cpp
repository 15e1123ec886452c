#include "job.h"

#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <unistd.h>

#include "support.h"

namespace dyad::python {
namespace {

/// Stopped jobs whose threads may still run. A forked child inherits the list but not the threads. Protected by the
/// GIL.
struct StoppedJobs {
  std::vector<std::shared_ptr<Job>> jobs;
  pid_t process = getpid();  ///< process that created the list

  /// False in a forked child.
  [[nodiscard]] bool has_threads() const { return process == getpid(); }
};

StoppedJobs& stopped_jobs() {
  static auto* const all = new StoppedJobs;  // never deleted: it must outlive the interpreter
  return *all;
}

}  // namespace

void Job::post(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    callbacks_.push_back(std::move(callback));
  }
  changed_.notify_one();
}

void Job::execute_and_notify() {
  std::exception_ptr failure;
  try {
    execute();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  is_done_ = true;
  changed_.notify_one();
}

void Job::run(const std::shared_ptr<Job>& job) {
  if (stopped_jobs().has_threads())
    std::erase_if(stopped_jobs().jobs, [](const std::shared_ptr<Job>& old) {
      const std::lock_guard lock(old->mutex_);
      if (old->is_done_) old->thread_.join();
      return old->is_done_;
    });
  job->thread_ = std::thread([task = job.get()] { task->execute_and_notify(); });
  for (bool is_done = false; !is_done;) {
    std::deque<std::function<void()>> callbacks;
    {
      const nb::gil_scoped_release release;
      std::unique_lock lock(job->mutex_);
      job->changed_.wait_for(lock, signal_check_interval, [&] { return job->is_done_ || !job->callbacks_.empty(); });
      callbacks.swap(job->callbacks_);
      is_done = job->is_done_;
    }
    try {
      for (const auto& callback : callbacks) callback();
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    } catch (...) {
      job->is_stop_requested_ = true;
      stopped_jobs().jobs.push_back(job);
      throw;
    }
  }
  job->thread_.join();
  if (job->failure_) std::rethrow_exception(job->failure_);
}

void Job::finish_all() {
  std::vector<std::shared_ptr<Job>> jobs = std::exchange(stopped_jobs().jobs, {});
  if (!stopped_jobs().has_threads()) {
    // In a forked child, std::thread can be neither joined nor destroyed: the jobs are leaked.
    new std::vector<std::shared_ptr<Job>>(std::move(jobs));
    return;
  }
  const nb::gil_scoped_release release;
  for (const auto& job : jobs) job->thread_.join();
  const nb::gil_scoped_acquire acquire;
  jobs.clear();
}

}  // namespace dyad::python
