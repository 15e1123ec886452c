#include "model/signed_factors.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::random_model;
using test::random_rows;

TEST(SignedFactors, ConversionPreservesPredictions) {
  for (const Index left_dim : {0, 4})
    for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
      if (left_dim > 0 && diagonal != Diagonal::tied) continue;
      Model<double> model = random_model<double>(9, 3, 1, left_dim);
      if (left_dim > 0) as_vector(model.spectrum) = as_vector(model.spectrum).cwiseAbs();
      if (diagonal != Diagonal::tied) {
        // Diagonal::zero requires that squares_j cancels M_jj. Diagonal::free allows any value.
        model.squares.assign(9, 0.3);
        if (diagonal == Diagonal::zero)
          for (Index j = 0; j < 9; ++j) model.squares[static_cast<std::size_t>(j)] = -model.interaction(j, j);
      }
      const Model<double> converted = SignedFactors<double>::of(model, diagonal, 0).model();
      const auto rows = random_rows<double>(20, 9, 2);
      EXPECT_LT(
          (test::brute_force_predictions(converted, rows.X) - test::brute_force_predictions(model, rows.X)).norm(),
          1e-10);
    }
}

TEST(SignedFactors, ZeroFactorsAreRaisedToMinimumStrength) {
  Model<double> model = random_model<double>(6, 2, 1);
  model.spectrum = {2, 0};
  const auto parameters = SignedFactors<double>::of(model, Diagonal::tied, 0.01);
  EXPECT_NEAR(parameters.A.col(1).squaredNorm(), 0.02, 1e-12);
}

TEST(SignedFactors, ScaleFeaturesPreservesPredictions) {
  Model<double> model = random_model<double>(5, 2, 1);
  model.squares.assign(5, 0.7);
  auto parameters = SignedFactors<double>::of(model, Diagonal::free, 0);
  const std::vector<double> factors{2, 0.5, 1, 10, 3};
  parameters.scale_features(factors);
  const auto rows = random_rows<double>(10, 5, 2);
  RowMajorMatrix<double> scaled = rows.X;
  for (Index j = 0; j < 5; ++j) scaled.col(j) /= factors[static_cast<std::size_t>(j)];
  EXPECT_LT(
      (test::brute_force_predictions(parameters.model(), scaled) - test::brute_force_predictions(model, rows.X)).norm(),
      1e-10);
}

}  // namespace
}  // namespace dyad
