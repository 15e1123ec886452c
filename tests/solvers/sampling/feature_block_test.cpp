#include "solvers/sampling/feature_block.h"

#include <gtest/gtest.h>
#include <Eigen/Cholesky>

#include "solvers/sampling/sampled_rows.h"

namespace dyad {
namespace {

/// Parameters: rank, whether the feature has a coefficient of its square, whether the model is bilinear, number of
/// rows.
class FeatureBlockDraw : public testing::TestWithParam<std::tuple<Index, bool, bool, Index>> {};

/// Draws have the mean and the covariance of the exact conditional distribution, and rows stay consistent.
TEST_P(FeatureBlockDraw, HasTheExactConditionalDistribution) {
  const auto [rank, has_square, is_bilinear, count] = GetParam();
  const Index dim = 5;
  const auto rows = test::random_rows<double>(count, dim, 1, 0.7);
  const Rows<double> view = rows.sparse();
  const FeatureColumns columns(std::span<const Rows<double>>(&view, 1));
  Random random(2, 0);
  FeatureParameters parameters(dim, rank);
  for (Index j = 0; j < dim; ++j)
    for (Index place = 0; place < rank + (has_square ? 2 : 1); ++place)
      parameters.at(j, place) = static_cast<float>(0.5 * random.normal());
  const Index left_dim = is_bilinear ? 2 : 0;
  const Index width = parameters.width();
  RowStates states(count, width, is_bilinear ? 2 : 1);
  const auto offset = [&](Index j) { return is_bilinear && j >= left_dim ? width : 0; };
  for (Index i = 0; i < count; ++i) {
    const Index source = columns.source_rows()[static_cast<std::size_t>(i)];
    states.residual(i) = static_cast<float>(random.normal());
    states.precision(i) = static_cast<float>(0.5 + random.uniform());
    for (Index j = 0; j < dim; ++j)
      for (Index c = 0; c < rank; ++c)
        states.row(i)[offset(j) + c] += static_cast<float>(rows.X(source, j)) * parameters.at(j, c);
  }

  const Index feature = 1;
  const Index size = rank + (has_square ? 2 : 1);
  const std::vector<double> means{0.3, -0.2, 0.1, 0.4, 0.5, 0.2, -0.6, 0.2, 0.1, 0.3, 0.2};
  const std::vector<double> precisions{2, 3, 1, 4, 5, 2, 6, 2, 1, 3, 2};
  const double alpha = 1.7;
  const FeatureColumns::Column column = columns.column(feature);
  Matrix<double> P = Matrix<double>::Zero(size, size);
  Vector<double> right_side(size);
  Vector<double> theta(size);
  for (Index a = 0; a < size; ++a) {
    theta[a] = static_cast<double>(parameters.at(feature, a));
    P(a, a) = precisions[static_cast<std::size_t>(a)];
    right_side[a] = precisions[static_cast<std::size_t>(a)] * means[static_cast<std::size_t>(a)];
  }
  std::vector<Vector<double>> gradients;
  for (Index e = 0; e < column.count(); ++e) {
    const float* row = states.row(column.row(e));
    const auto x = static_cast<double>(column.value(e));
    Vector<double> h(size);
    for (Index c = 0; c < rank; ++c)
      h[c] = is_bilinear ? x * static_cast<double>(row[width + c]) : x * (static_cast<double>(row[c]) - x * theta[c]);
    h[rank] = x;
    if (has_square) h[rank + 1] = x * x;
    const auto omega = static_cast<double>(states.precision(column.row(e)));
    P += alpha * omega * h * h.transpose();
    right_side += alpha * omega * h * (static_cast<double>(states.residual(column.row(e))) + h.dot(theta));
    gradients.push_back(h);
  }
  const Matrix<double> covariance = P.inverse();
  const Vector<double> mean = covariance * right_side;

  FeatureBlock block(width);
  const FeatureBlock::Side side{.read = is_bilinear ? width : 0, .write = 0, .is_symmetric = !is_bilinear};
  const int draws = 20000;
  Vector<double> sum = Vector<double>::Zero(size);
  Matrix<double> squares = Matrix<double>::Zero(size, size);
  for (int draw = 0; draw < draws; ++draw) {
    FeatureParameters drawn = parameters;
    RowStates moved = states;
    block.draw(
        column, feature,
        {.means = means.data(), .precisions = precisions.data(), .noise_precision = alpha, .has_square = has_square},
        side, drawn, moved, random);
    Vector<double> value(size);
    for (Index a = 0; a < size; ++a) value[a] = static_cast<double>(drawn.at(feature, a));
    sum += value - mean;
    squares += (value - mean) * (value - mean).transpose();
    if (draw > 0) continue;
    for (Index e = 0; e < column.count(); ++e) {
      const Index i = column.row(e);
      EXPECT_NEAR(moved.residual(i),
                  static_cast<double>(states.residual(i)) - gradients[static_cast<std::size_t>(e)].dot(value - theta),
                  1e-4);
      for (Index c = 0; c < rank; ++c)
        EXPECT_NEAR(
            moved.row(i)[c],
            static_cast<double>(states.row(i)[c]) + static_cast<double>(column.value(e)) * (value[c] - theta[c]), 1e-5);
    }
  }
  for (Index a = 0; a < size; ++a) {
    EXPECT_NEAR(sum[a] / draws, 0, 5 * std::sqrt(covariance(a, a) / draws));
    for (Index b = 0; b <= a; ++b)
      EXPECT_NEAR(squares(a, b) / draws, covariance(a, b),
                  5 * std::sqrt((covariance(a, a) * covariance(b, b) + std::pow(covariance(a, b), 2)) / draws));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FeatureBlockDraw,
                         testing::Values(std::tuple(3, false, false, 150), std::tuple(3, true, false, 150),
                                         std::tuple(9, true, false, 150), std::tuple(2, false, true, 150),
                                         std::tuple(8, true, false, 5), std::tuple(8, false, true, 4)));

}  // namespace
}  // namespace dyad
