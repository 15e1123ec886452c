#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include <Eigen/Cholesky>

#include "linalg/row_products.h"
#include "solvers/gauss_newton/in_memory_equations.h"

namespace dyad {
namespace {

/// For n rows the dual takes n^2 operations per unknown, and a product of conjugate gradients 6 n. At this number the
/// dual costs as much as 43 products; a step takes up to 200. Training on 10,000 columns took 1/9 of the time of
/// conjugate gradients with 60 rows, and 2/3 with 250.
constexpr Index max_dual_rows = 256;

/// One line per unknown of a block of features: its scaled derivative for each row, G D^-1/2, then its scaled offset,
/// D^-1/2 offset. The products of all lines are G D^-1 G' and G D^-1 offset.
class DualBlock {
 public:
  static constexpr Index max_features = 64;  // 24 rows of rank 8 take 128 KB, which second-level caches hold

  DualBlock(Index rows, Index unknowns_of_feature) : lines_(max_features * unknowns_of_feature, rows + 1) {}

  void clear() { count_ = 0; }

  /// Derivatives with respect to one unknown for all rows, which has the diagonal entry D.
  template <typename Derivatives>
  void add(const Derivatives& derivatives, double D, double offset) {
    const double scale = 1 / std::sqrt(D);
    lines_.row(count_).head(lines_.cols() - 1) = scale * derivatives;
    lines_(count_++, lines_.cols() - 1) = scale * offset;
  }

  void add_products_to(Tall<double>& products) const {
    const auto size = static_cast<std::size_t>(count_ * lines_.cols());
    add_back_projection(Rows<double>::dense({lines_.data(), size}, lines_.cols()), lines_.data(), lines_.cols(),
                        products.data());
  }

 private:
  Tall<double> lines_;
  Index count_ = 0;
};

}  // namespace

bool InMemoryNormalEquations::prefers_dual() const {
  return rows_.X().is_dense() && rows_.count() <= max_dual_rows && rows_.count() < dim() * width();
}

RowSums InMemoryNormalEquations::dual(const SignedFactors<double>& at, const ParameterVector& D,
                                      const ParameterVector& offset) const {
  const Index n = rows_.count();
  RowSums sums;
  sums.set_zero(dim(), width(), has_squares());
  Tall<double> features(dim(), width());
  features << at.weights, at.A;
  const Projections projections = project_sides(all_rows(), features);
  const Vector<double> f = predictions(all_rows(), at, at.square_coefficients(), projections);
  Vector<double> roots(n);      // of the curvatures, H^1/2
  Vector<double> residuals(n);  // H^-1/2 r
  for (Index i = 0; i < n; ++i) {
    double curvature = 0;
    const double residual = expand_loss(i, f[i], sums.loss, curvature);
    roots[i] = std::sqrt(curvature);
    residuals[i] = roots[i] > 0 ? residual / roots[i] : 0;
  }
  const Tall<double> products = dual_products(at, D, offset, roots, projections);
  if (products.size() == 0) return sums;  // interrupted
  Small<double> equations = products.topLeftCorner(n, n);
  equations.diagonal().array() += 1;
  if (options_.shape.intercept) equations += roots * roots.transpose() / D.intercept;
  const Vector<double> y = Eigen::LLT<Small<double>>(equations).solve(residuals + products.col(n).head(n));
  add_transposed_jacobian(all_rows(), at, roots.cwiseProduct(y), projections, sums);
  return sums;
}

/// [G D^-1/2, D^-1/2 offset] over all unknowns but the intercept, times its transpose; empty after an interruption.
Tall<double> InMemoryNormalEquations::dual_products(const SignedFactors<double>& at, const ParameterVector& D,
                                                    const ParameterVector& offset, const Vector<double>& roots,
                                                    const Projections& projections) const {
  using Row = Eigen::RowVectorXd;
  const Index n = rows_.count();
  const Index k = options_.shape.rank;
  // The derivative with respect to a factor of feature j is x_j times these, less the term of a removed diagonal.
  const auto derivatives_by = [&](const Tall<double>& side) {
    const Tall<double> transposed = side.middleCols(1, k).transpose();
    return Tall<double>((sides_.two() ? 1 : 2) * (at.signs.asDiagonal() * transposed));
  };
  const Tall<double> derivatives_of_left = derivatives_by(projections.other());
  const Tall<double> derivatives_of_right = sides_.two() ? derivatives_by(projections.left) : Tall<double>();
  const auto add_feature = [&](Index j, DualBlock& block) {
    Row x(n);
    rows_.X().copy_column(j, x.data());
    const Row scaled = x.cwiseProduct(roots.transpose());
    const Row squares = x.cwiseProduct(scaled);
    if (options_.shape.linear) block.add(scaled, D.features(j, 0), offset.features(j, 0));
    const Tall<double>& derivatives =
        sides_.two() && j >= sides_.right_first() ? derivatives_of_right : derivatives_of_left;
    for (Index c = 0; c < k; ++c) {
      const double removed = has_squares() ? 2 * at.signs[c] * at.A(j, c) : 0;
      block.add(scaled.cwiseProduct(derivatives.row(c)) - removed * squares, D.features(j, 1 + c),
                offset.features(j, 1 + c));
    }
    if (options_.shape.diagonal == Diagonal::free) block.add(squares, D.squares[j], offset.squares[j]);
  };

  std::vector<Tall<double>> sums(static_cast<std::size_t>(pool_.count()));
  std::atomic<bool> is_interrupted = false;
  pool_.split((dim() + DualBlock::max_features - 1) / DualBlock::max_features, [&](int worker, Share share) {
    Tall<double>& own = sums[static_cast<std::size_t>(worker)];
    own.setZero(n + 1, n + 1);
    DualBlock block(n, k + 2);
    for (Index b = share.first; b < share.first + share.count && !is_interrupted; ++b) {
      if (worker == 0 && options_.interrupted && options_.interrupted()) is_interrupted = true;
      block.clear();
      const Index first = b * DualBlock::max_features;
      for (Index j = first; j < std::min(first + DualBlock::max_features, dim()); ++j) add_feature(j, block);
      block.add_products_to(own);
    }
  });
  if (is_interrupted) return {};
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].size() > 0) sums.front() += sums[worker];
  return std::move(sums.front());
}

}  // namespace dyad
