#include "training/multi_pass/level_choice.h"

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(LevelChoice, TakesTheBestLevelAndStopsWhereNothingIsGained) {
  LevelChoice choice(1.0, 2, true);
  EXPECT_TRUE(choice.goes_on());
  EXPECT_FALSE(choice.add(1.2));  // the first ridge is strong
  EXPECT_TRUE(choice.goes_on());
  EXPECT_TRUE(choice.add(0.8));
  EXPECT_TRUE(choice.goes_on());
  EXPECT_TRUE(choice.add(0.7));
  EXPECT_TRUE(choice.goes_on());
  EXPECT_FALSE(choice.add(0.75));
  EXPECT_TRUE(choice.goes_on());
  EXPECT_FALSE(choice.add(0.7001));
  EXPECT_FALSE(choice.goes_on());
  EXPECT_EQ(choice.best(), 3);
  EXPECT_EQ(choice.best_loss(), 0.7);
  EXPECT_EQ(choice.one_pass(), 1.0);
}

TEST(LevelChoice, OnePassMayBeTheBestUnlessAnotherWasAskedFor) {
  LevelChoice may(1.0, 2, true);
  LevelChoice must(1.0, 2, false);
  for (const double loss : {1.5, 1.4, 1.3, 1.2, 1.1, 1.05}) {
    may.add(loss);
    must.add(loss);
  }
  EXPECT_EQ(may.best(), 0);
  EXPECT_FALSE(may.goes_on());
  EXPECT_EQ(must.best(), 6);
}

}  // namespace
}  // namespace dyad
