#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include <Eigen/Cholesky>

#include "linalg/row_products.h"
#include "solvers/gauss_newton/in_memory_equations.h"

namespace dyad {
namespace {

/// Maximum number of rows n for which the dual is used. The dual takes n^2 multiplications per parameter, and an
/// iteration of conjugate gradients takes 6 n. For n = 256 the dual costs as much as 43 iterations; a step takes up to
/// 200. Training on 10,000 columns took 1/9 of the time of conjugate gradients with 60 rows, and 2/3 with 250.
constexpr Index max_dual_rows = 256;

/// Rows of [D^-1/2 G', D^-1/2 offset] for the parameters of a block of features: row p contains the scaled derivatives
/// of all predictions with respect to parameter p, then its scaled offset.
class DualBlock {
 public:
  /// Features per block. For a data set of 24 rows and rank 8, a block takes 128 KB, which fit the L2 cache.
  static constexpr Index max_features = 64;

  DualBlock(Index rows, Index parameters_per_feature) : matrix_(max_features * parameters_per_feature, rows + 1) {}

  void clear() { count_ = 0; }

  /// Appends the row of one parameter: the derivatives of all predictions, its entry of D and its offset.
  template <typename Derivatives>
  void add(const Derivatives& derivatives, double D, double offset) {
    const double scale = 1 / std::sqrt(D);
    matrix_.row(count_).head(matrix_.cols() - 1) = scale * derivatives;
    matrix_(count_++, matrix_.cols() - 1) = scale * offset;
  }

  /// gram += B'B, where B are the rows added since `clear`.
  void add_gram_to(RowMajorMatrix<double>& gram) const {
    const auto size = static_cast<std::size_t>(count_ * matrix_.cols());
    add_back_projection(Rows<double>::dense({matrix_.data(), size}, matrix_.cols()), matrix_.data(), matrix_.cols(),
                        gram.data());
  }

 private:
  RowMajorMatrix<double> matrix_;
  Index count_ = 0;  ///< number of rows in use
};

}  // namespace

bool InMemoryNormalEquations::prefers_dual() const {
  return rows_.X().is_dense() && rows_.count() <= max_dual_rows && rows_.count() < dim() * width();
}

RowSums InMemoryNormalEquations::solve_dual(const SignedFactors<double>& parameters, const ParameterVector& D,
                                            const ParameterVector& offset) const {
  const Index n = rows_.count();
  RowSums sums;
  sums.set_zero(dim(), width(), has_squares());
  RowMajorMatrix<double> features(dim(), width());
  features << parameters.weights, parameters.A;
  const Projections projections = project_sides(all_rows(), features);
  const Vector<double> f = predictions(all_rows(), parameters, parameters.square_coefficients(), projections);
  Vector<double> roots(n);      // diagonal of H^1/2
  Vector<double> residuals(n);  // H^-1/2 r
  for (Index i = 0; i < n; ++i) {
    double curvature = 0;
    const double residual = expand_loss(i, f[i], sums.loss, curvature);
    roots[i] = std::sqrt(curvature);
    residuals[i] = roots[i] > 0 ? residual / roots[i] : 0;
  }
  const RowMajorMatrix<double> gram = compute_dual_gram(parameters, D, offset, roots, projections);
  if (gram.size() == 0) return sums;  // interrupted
  Matrix<double> equations = gram.topLeftCorner(n, n);
  equations.diagonal().array() += 1;
  if (options_.shape.intercept) equations += roots * roots.transpose() / D.intercept;
  const Vector<double> y = Eigen::LLT<Matrix<double>>(equations).solve(residuals + gram.col(n).head(n));
  add_transposed_jacobian(all_rows(), parameters, roots.cwiseProduct(y), projections, sums);
  return sums;
}

RowMajorMatrix<double> InMemoryNormalEquations::compute_dual_gram(const SignedFactors<double>& parameters,
                                                                  const ParameterVector& D,
                                                                  const ParameterVector& offset,
                                                                  const Vector<double>& roots,
                                                                  const Projections& projections) const {
  using Row = Eigen::RowVectorXd;
  const Index n = rows_.count();
  const Index k = options_.shape.rank;
  // df_i/dA_jc = x_ij derivatives(c, i) - 2 signs_c A_jc x_ij^2; the second term only for a zero or free diagonal.
  const auto factor_derivatives = [&](const RowMajorMatrix<double>& side) {
    const RowMajorMatrix<double> transposed = side.middleCols(1, k).transpose();
    return RowMajorMatrix<double>((sides_.is_bilinear() ? 1 : 2) * (parameters.signs.asDiagonal() * transposed));
  };
  const RowMajorMatrix<double> left_derivatives = factor_derivatives(projections.other());
  const RowMajorMatrix<double> right_derivatives =
      sides_.is_bilinear() ? factor_derivatives(projections.left) : RowMajorMatrix<double>();
  const auto add_feature = [&](Index j, DualBlock& block) {
    Row x(n);
    rows_.X().copy_column(j, x.data());
    const Row scaled = x.cwiseProduct(roots.transpose());
    const Row squares = x.cwiseProduct(scaled);
    if (options_.shape.linear) block.add(scaled, D.features(j, 0), offset.features(j, 0));
    const RowMajorMatrix<double>& derivatives =
        sides_.is_bilinear() && j >= sides_.right_first() ? right_derivatives : left_derivatives;
    for (Index c = 0; c < k; ++c) {
      const double diagonal_term = has_squares() ? 2 * parameters.signs[c] * parameters.A(j, c) : 0;
      block.add(scaled.cwiseProduct(derivatives.row(c)) - diagonal_term * squares, D.features(j, 1 + c),
                offset.features(j, 1 + c));
    }
    if (options_.shape.diagonal == Diagonal::free) block.add(squares, D.squares[j], offset.squares[j]);
  };

  std::vector<RowMajorMatrix<double>> sums(static_cast<std::size_t>(pool_.count()));
  std::atomic<bool> is_interrupted = false;
  pool_.split((dim() + DualBlock::max_features - 1) / DualBlock::max_features, [&](int worker, IndexRange share) {
    RowMajorMatrix<double>& sum = sums[static_cast<std::size_t>(worker)];
    sum.setZero(n + 1, n + 1);
    DualBlock block(n, k + 2);
    for (Index b = share.first; b < share.first + share.count && !is_interrupted; ++b) {
      if (worker == 0 && options_.interrupted && options_.interrupted()) is_interrupted = true;
      block.clear();
      const Index first = b * DualBlock::max_features;
      for (Index j = first; j < std::min(first + DualBlock::max_features, dim()); ++j) add_feature(j, block);
      block.add_gram_to(sum);
    }
  });
  if (is_interrupted) return {};
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].size() > 0) sums.front() += sums[worker];
  return std::move(sums.front());
}

}  // namespace dyad
