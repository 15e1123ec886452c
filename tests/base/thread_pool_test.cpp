#include "base/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(ThreadPool, SplitCoversEachIndexOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.count(), threads);
    for (const Index total : {0, 1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(total));
      pool.split(total, [&](int, IndexRange range) {
        for (Index i = range.first; i < range.first + range.count; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& count : visits) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, RunsRepeatedly) {
  ThreadPool pool(4);
  std::atomic<int> calls = 0;
  for (int round = 0; round < 1000; ++round) pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 4000);
}

TEST(ThreadPool, RethrowsExceptionAndStaysUsable) {
  ThreadPool pool(3);
  for (const int failing_worker : {0, 2}) {
    const auto task = [&](int worker) {
      if (worker == failing_worker) throw std::invalid_argument("on purpose");
    };
    EXPECT_THROW(pool.run(task), std::invalid_argument);
  }
  std::atomic<int> calls = 0;
  pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace dyad
