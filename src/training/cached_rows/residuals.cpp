#include "training/cached_rows/residuals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/median.h"
#include "model/forward_pass.h"

namespace dyad {

Vector<double> compute_residuals(const ObservedRows& rows, const SignedFactors<double>& parameters, ThreadPool& pool) {
  const Sides sides(rows.dim(), parameters.left_dim);
  const Vector<double> squares = parameters.square_coefficients();
  const ForwardPass<double> forward(parameters, squares);
  const Index k = parameters.rank();
  RowMajorMatrix<double> features(rows.dim(), k + 1);  // [A, w]
  features << parameters.A, parameters.weights;
  Vector<double> residuals(rows.count());
  for_each_row_range(rows.X(), pool, [&](int, IndexRange share) {
    RowMajorMatrix<double> left(share.count, k + 1);
    RowMajorMatrix<double> right = RowMajorMatrix<double>::Zero(sides.is_bilinear() ? share.count : 0, k + 1);
    Vector<double> square_terms = Vector<double>::Zero(share.count);
    rows.X().multiply(share, sides.left_columns(), features.data(), k + 1, left.data());
    if (sides.is_bilinear())
      rows.X().multiply(share, sides.right_columns(), features.data() + sides.right_first() * (k + 1), k + 1,
                        right.data());
    if (squares.size() > 0) rows.X().multiply_squares(share, squares.data(), square_terms.data());
    for (Index i = 0; i < share.count; ++i) {
      const double* partner = sides.is_bilinear() ? right.row(i).data() : left.row(i).data();
      const double linear = left(i, k) + (sides.is_bilinear() ? right(i, k) : 0);
      residuals[share.first + i] =
          rows.targets()[share.first + i] - forward.combine(left.row(i).data(), partner, linear, square_terms[i]);
    }
  });
  return residuals;
}

double compute_robust_scale(const Vector<double>& residuals, const Vector<double>& weights, Index unknowns) {
  constexpr double normal_consistency = 1.4826;  // 1 / Phi^-1(3/4)
  std::vector<double> sizes;
  for (Index i = 0; i < residuals.size(); ++i)
    if (weights[i] > 0) sizes.push_back(std::abs(residuals[i]));
  if (sizes.empty()) return 0;
  const auto count = static_cast<double>(sizes.size());
  const double degrees_of_freedom = std::max(1.0, count - static_cast<double>(unknowns));
  return normal_consistency * median(sizes) * std::sqrt(count / degrees_of_freedom);
}

double min_residual_scale(const ObservedRows& rows) {
  const double weight = std::max(rows.weights().sum(), std::numeric_limits<double>::min());
  const double mean_square = rows.weights().dot(rows.targets().cwiseAbs2()) / weight;
  return std::max(std::sqrt(exact_residual_share(rows.X().epsilon()) * mean_square),
                  std::numeric_limits<double>::min());
}

double exact_residual_share(double epsilon) {
  // Gauss-Newton ends at relative residuals of 10 epsilon, and ill-conditioned problems end earlier. Rows of floats
  // have an epsilon of 1e-7.
  constexpr double max_double_epsilon = 1e-10;
  return epsilon > max_double_epsilon ? 1e-9 : 1e-14;
}

}  // namespace dyad
