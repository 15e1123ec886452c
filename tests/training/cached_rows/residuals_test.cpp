#include "training/cached_rows/residuals.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

TEST(Residuals, EqualBruteForceForAllShapes) {
  const auto rows = test::random_rows<double>(30, 7, 1);
  for (const Index left_dim : {Index{0}, Index{3}})
    for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
      if (left_dim > 0 && diagonal != Diagonal::tied) continue;
      Model<double> model = test::random_model<double>(7, 2, 2, left_dim);
      if (diagonal == Diagonal::free) model.squares.assign(7, 0.3);
      const SignedFactors<double> parameters = SignedFactors<double>::of(model, diagonal, 0);
      const Model<double> exported = parameters.model();
      const Vector<double> expected = as_vector(rows.targets) - test::brute_force_predictions(exported, rows.X);
      EXPECT_LT((compute_residuals(rows.dense(), parameters, test::pool()) - expected).norm(), 1e-10);
      EXPECT_LT((compute_residuals(rows.sparse(), parameters, test::pool()) - expected).norm(), 1e-10);
    }
}

/// The robust scale of 4,000 normal numbers has a standard error of 1.17 s / sqrt(n) = 1.8%.
TEST(Residuals, RobustScaleIsTheStandardDeviationOfNormalNumbers) {
  Random random(1, 0);
  Vector<double> r = 2 * random_normal<double>(random, 4000, 1);
  const Vector<double> ones = Vector<double>::Ones(4000);
  EXPECT_NEAR(compute_robust_scale(r, ones, 0), 2, 5 * 2 * 0.018);
  r.head(200).setConstant(1e6);
  EXPECT_NEAR(compute_robust_scale(r, ones, 0), 2, 0.3) << "5% of outliers change the scale by less than 7%";
  EXPECT_NEAR(compute_robust_scale(r, ones, 2000) / compute_robust_scale(r, ones, 0), std::sqrt(2.0), 1e-12);
}

}  // namespace
}  // namespace dyad
