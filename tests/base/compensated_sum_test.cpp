#include "base/compensated_sum.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

TEST(CompensatedSum, IsAccurateWhenPlainSumIsNot) {
  CompensatedSum sum;
  double plain = 0;
  const auto add = [&](double term) {
    sum += term;
    plain += term;
  };
  add(1);
  for (int i = 0; i < 1'000'000; ++i) add(1e-17);
  EXPECT_EQ(plain, 1);
  EXPECT_DOUBLE_EQ(sum.value(), 1 + 1e-11);
  add(1e100);
  add(-1e100);
  EXPECT_DOUBLE_EQ(sum.value(), 1 + 1e-11);
}

TEST(CompensatedSum, AgreesWithLongDouble) {
  Random random(1, 0);
  CompensatedSum sum;
  double plain = 0;
  long double extended = 0;
  for (int i = 0; i < 5'000'000; ++i) {
    const double term = 1e6 + random.uniform();
    sum += term;
    plain += term;
    extended += term;
  }
  const auto error_of = [&](double value) { return std::abs(static_cast<double>(value - extended)); };
  EXPECT_LE(error_of(sum.value()), 1e-15 * sum.value());
  EXPECT_GT(error_of(plain), 10 * error_of(sum.value()));
}

TEST(CompensatedSum, IsInfiniteAfterInfiniteTerm) {
  CompensatedSum sum;
  sum += std::numeric_limits<double>::infinity();
  sum += 1;
  EXPECT_EQ(sum.value(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace dyad
