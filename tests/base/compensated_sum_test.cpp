#include "base/compensated_sum.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

TEST(CompensatedSum, KeepsWhatAPlainSumLoses) {
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

TEST(CompensatedSum, AgreesWithALongerMantissa) {
  Random random(1, 0);
  CompensatedSum sum;
  double plain = 0;
  long double wide = 0;
  for (int i = 0; i < 5'000'000; ++i) {
    const double term = 1e6 + random.uniform();
    sum += term;
    plain += term;
    wide += term;
  }
  const auto off = [&](double value) { return std::abs(static_cast<double>(value - wide)); };
  EXPECT_LE(off(sum.value()), 1e-15 * sum.value());
  EXPECT_GT(off(plain), 10 * off(sum.value()));
}

TEST(CompensatedSum, OfInfinityIsInfinite) {
  CompensatedSum sum;
  sum += std::numeric_limits<double>::infinity();
  sum += 1;
  EXPECT_EQ(sum.value(), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace dyad
