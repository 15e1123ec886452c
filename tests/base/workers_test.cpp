#include "base/workers.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(Workers, SplitCoversEverythingOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    Workers workers(threads);
    EXPECT_EQ(workers.count(), threads);
    for (const Index total : {0, 1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(total));
      workers.split(total, [&](int, Share share) {
        for (Index i = share.first; i < share.first + share.count; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& count : visits) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Workers, RunsAgainAndAgain) {
  Workers workers(4);
  std::atomic<int> calls = 0;
  for (int round = 0; round < 1000; ++round) workers.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 4000);
}

TEST(Workers, ThrowsWhatATaskThrewAndGoesOn) {
  Workers workers(3);
  for (const int culprit : {0, 2}) {
    const auto task = [&](int worker) {
      if (worker == culprit) throw std::invalid_argument("on purpose");
    };
    EXPECT_THROW(workers.run(task), std::invalid_argument);
  }
  std::atomic<int> calls = 0;
  workers.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace dyad
