#include "training/multi_pass/early_stopping.h"

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(EarlyStopping, SelectsTheBestLevelAndStopsWithoutProgress) {
  EarlyStopping stopping(1.0, 2, true);
  EXPECT_TRUE(stopping.should_continue());
  EXPECT_FALSE(stopping.add(1.2));  // a strong first ridge may be worse than one pass
  EXPECT_TRUE(stopping.should_continue());
  EXPECT_TRUE(stopping.add(0.8));
  EXPECT_TRUE(stopping.should_continue());
  EXPECT_TRUE(stopping.add(0.7));
  EXPECT_TRUE(stopping.should_continue());
  EXPECT_FALSE(stopping.add(0.75));
  EXPECT_TRUE(stopping.should_continue());
  EXPECT_FALSE(stopping.add(0.7001));
  EXPECT_FALSE(stopping.should_continue());
  EXPECT_EQ(stopping.best(), 3);
  EXPECT_EQ(stopping.best_loss(), 0.7);
  EXPECT_EQ(stopping.one_pass_loss(), 1.0);
}

TEST(EarlyStopping, SelectsOnePassOnlyIfAllowed) {
  EarlyStopping allowed(1.0, 2, true);
  EarlyStopping excluded(1.0, 2, false);
  for (const double loss : {1.5, 1.4, 1.3, 1.2, 1.1, 1.05}) {
    allowed.add(loss);
    excluded.add(loss);
  }
  EXPECT_EQ(allowed.best(), 0);
  EXPECT_FALSE(allowed.should_continue());
  EXPECT_EQ(excluded.best(), 6);
}

}  // namespace
}  // namespace dyad
