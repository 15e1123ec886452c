#include "job.h"

#include <chrono>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace nb = nanobind;

namespace dyad::python {
namespace {

/// Stopped jobs that may still be at it; those of a process that was forked are none of the child's business.
struct LeftBehind {
  std::vector<std::shared_ptr<Job>> jobs;
  pid_t process = getpid();

  [[nodiscard]] bool are_ours() const { return process == getpid(); }
};

LeftBehind& left_behind() {
  static auto* const all = new LeftBehind;  // outlives Python
  return *all;
}

}  // namespace

void Job::tell(std::function<void()> message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  changed_.notify_one();
}

void Job::work_and_report() {
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  done_ = true;
  changed_.notify_one();
}

void Job::run(const std::shared_ptr<Job>& job) {
  if (left_behind().are_ours())
    std::erase_if(left_behind().jobs, [](const std::shared_ptr<Job>& old) {
      const std::lock_guard lock(old->mutex_);
      if (old->done_) old->thread_.join();
      return old->done_;
    });
  job->thread_ = std::thread([own = job.get()] { own->work_and_report(); });
  for (bool done = false; !done;) {
    std::deque<std::function<void()>> messages;
    {
      const nb::gil_scoped_release release;
      std::unique_lock lock(job->mutex_);
      job->changed_.wait_for(lock, std::chrono::milliseconds(20),
                             [&] { return job->done_ || !job->messages_.empty(); });
      messages.swap(job->messages_);
      done = job->done_;
    }
    try {
      for (const auto& message : messages) message();
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    } catch (...) {
      job->stopped_ = true;
      left_behind().jobs.push_back(job);
      throw;
    }
  }
  job->thread_.join();
  if (job->failure_) std::rethrow_exception(job->failure_);
}

void Job::finish_all() {
  std::vector<std::shared_ptr<Job>> jobs = std::exchange(left_behind().jobs, {});
  if (!left_behind().are_ours()) {
    new std::vector<std::shared_ptr<Job>>(std::move(jobs));  // their threads are not here to be waited for
    return;
  }
  const nb::gil_scoped_release release;
  for (const auto& job : jobs) job->thread_.join();
  const nb::gil_scoped_acquire acquire;
  jobs.clear();
}

}  // namespace dyad::python
