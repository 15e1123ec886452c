#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "training/multi_pass/held_out_folds.h"

namespace dyad {
namespace {

/// Two columns of 20 and 10 categories, whose effects have different sizes: y = u + 0.1 v + p q + noise.
class BalancedPosterior : public testing::Test {
 protected:
  void SetUp() override {
    Random random(1, 0);
    std::vector<double> effects;
    for (Index j = 0; j < 2 * dim; ++j) effects.push_back((j % dim < left ? 1 : 0.1) * random.normal());
    for (Index i = 0; i < 2000; ++i) {
      const auto u = static_cast<Index>(random.uniform() * static_cast<double>(left));
      const Index v = left + static_cast<Index>(random.uniform() * static_cast<double>(dim - left));
      const auto a = static_cast<std::size_t>(u);
      const auto b = static_cast<std::size_t>(v);
      columns_.insert(columns_.end(), {static_cast<std::int32_t>(u), static_cast<std::int32_t>(v)});
      values_.insert(values_.end(), {1.0, 1.0});
      offsets_.push_back(static_cast<Index>(columns_.size()));
      const auto half = static_cast<std::size_t>(dim);
      targets_.push_back(effects[a] + effects[b] + 5 * effects[half + a] * effects[half + b] + 0.1 * random.normal());
    }
  }

  [[nodiscard]] Rows<double> rows() const { return Rows<double>::sparse(offsets_, columns_, values_, dim, targets_); }

  [[nodiscard]] KalmanFilter<double> learn(bool one_feature_per_row) const {
    KalmanOptions options;
    options.shape.dim = dim;
    options.shape.rank = 2;
    options.shape.diagonal = Diagonal::zero;
    KalmanFilter<double> filter(
        options, Prior{4, 0.5, 0.5, 0.3, 0},
        FilterGroups{.count = 2, .have_mean = {true, true}, .one_feature_per_row = one_feature_per_row}, 1);
    for (Index j = 0; j < dim; ++j) {
      filter.set_group(j, j < left ? 0 : 1);
      filter.add_feature(j, 1);
    }
    std::vector<double> predictions(static_cast<std::size_t>(rows().count()));
    filter.learn(rows(), predictions);
    return filter;
  }

  /// Mean of E[A_jc^2] over the features [first, end).
  static double mean_square(const Posterior<double>& posterior, Index first, Index end) {
    double sum = 0;
    for (Index j = first; j < end; ++j)
      sum += posterior.means.A.row(j).squaredNorm() + posterior.variances.A.row(j).sum();
    return sum / static_cast<double>(end - first);
  }

  static constexpr Index left = 20;
  static constexpr Index dim = 30;
  std::vector<Index> offsets_{0};
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
  std::vector<double> targets_;
};

TEST_F(BalancedPosterior, GroupsHaveEqualSquaresAndPredictionsDoNotChange) {
  const KalmanFilter<double> filter = learn(true);
  const Posterior<double> posterior = filter.posterior();
  const Posterior<double> balanced = balanced_posterior(filter);
  EXPECT_GT(std::abs(std::log(mean_square(posterior, 0, left) / mean_square(posterior, left, dim))), 0.5);
  EXPECT_NEAR(mean_square(balanced, 0, left) / mean_square(balanced, left, dim), 1, 1e-12);
  std::vector<double> before(static_cast<std::size_t>(rows().count()));
  std::vector<double> after(before.size());
  posterior.means.predict(rows(), before);
  balanced.means.predict(rows(), after);
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(after[i], before[i], 1e-12 * (1 + std::abs(before[i])));
}

TEST_F(BalancedPosterior, OtherRowsDoNotChange) {
  const KalmanFilter<double> filter = learn(false);
  EXPECT_EQ(balanced_posterior(filter).means.A, filter.posterior().means.A);
}

}  // namespace
}  // namespace dyad
