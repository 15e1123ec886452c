#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <Eigen/Cholesky>

#include "newton/row_sums.h"
#include "rows/products.h"

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

template <typename Scalar>
RowSums<Scalar> RowLooks<Scalar>::dual_sums(const SignedFactors<Scalar>&, const Direction<Scalar>&,
                                            const Direction<Scalar>&) const {
  throw std::logic_error("dual_sums is not available for these rows");
}

template <typename Scalar>
bool LooksInMemory<Scalar>::prefers_dual() const {
  return !rows_.is_sparse() && rows_.count() <= max_dual_rows && rows_.count() < dim() * width();
}

template <typename Scalar>
RowSums<Scalar> LooksInMemory<Scalar>::dual_sums(const SignedFactors<Scalar>& at, const Direction<Scalar>& D,
                                                 const Direction<Scalar>& offset) const {
  const Index n = rows_.count();
  RowSums<Scalar> sums;
  sums.set_zero(dim(), width(), untied());
  Tall<Scalar> features(dim(), width());
  features << at.weights, at.A;
  Tall<Scalar> left;
  Tall<Scalar> right;
  project_sides(rows_, features, left, right);
  const Vector<Scalar> f = predictions(rows_, at, at.square_coefficients(), left, right);
  Vector<double> roots(n);      // of the curvatures, H^1/2
  Vector<double> residuals(n);  // H^-1/2 r
  for (Index i = 0; i < n; ++i) {
    Scalar curvature = 0;
    const auto residual = static_cast<double>(loss_of_row(rows_, i, f[i], sums.loss, curvature));
    roots[i] = std::sqrt(static_cast<double>(curvature));
    residuals[i] = roots[i] > 0 ? residual / roots[i] : 0;
  }
  const Tall<double> products = dual_products(at, D, offset, roots, left, right);
  if (products.size() == 0) return sums;  // interrupted
  Small<double> equations = products.topLeftCorner(n, n);
  equations.diagonal().array() += 1;
  if (options_.shape.intercept) equations += roots * roots.transpose() / static_cast<double>(D.intercept);
  const Vector<double> y = Eigen::LLT<Small<double>>(equations).solve(residuals + products.col(n).head(n));
  add_back(rows_, at, roots.cwiseProduct(y).template cast<Scalar>(), left, right, sums);
  return sums;
}

/// [G D^-1/2, D^-1/2 offset] over all unknowns but the intercept, times its transpose; empty after an interruption.
template <typename Scalar>
Tall<double> LooksInMemory<Scalar>::dual_products(const SignedFactors<Scalar>& at, const Direction<Scalar>& D,
                                                  const Direction<Scalar>& offset, const Vector<double>& roots,
                                                  const Tall<Scalar>& left, const Tall<Scalar>& right) const {
  using Row = Eigen::RowVectorXd;
  const Index n = rows_.count();
  const Index k = options_.shape.rank;
  // The derivative with respect to a factor of feature j is x_j times these, less what the removed diagonal takes.
  const auto slopes_by = [&](const Tall<Scalar>& projections) {
    Tall<double> slopes = projections.middleCols(1, k).transpose().template cast<double>();
    return Tall<double>((sides_.two() ? 1 : 2) * (at.signs.template cast<double>().asDiagonal() * slopes));
  };
  const Tall<double> slopes_of_left = slopes_by(sides_.two() ? right : left);
  const Tall<double> slopes_of_right = sides_.two() ? slopes_by(left) : Tall<double>();
  const auto add_feature = [&](Index j, DualBlock& block) {
    const Row x = Eigen::Map<const Vector<Scalar>, 0, Eigen::InnerStride<>>(rows_.row(0) + j, n,
                                                                            Eigen::InnerStride<>(rows_.stride()))
                      .transpose()
                      .template cast<double>();
    const Row scaled = x.cwiseProduct(roots.transpose());
    const Row squares = x.cwiseProduct(scaled);
    const auto add = [&](const auto& derivatives, Scalar diagonal, Scalar own_offset) {
      block.add(derivatives, static_cast<double>(diagonal), static_cast<double>(own_offset));
    };
    if (options_.shape.linear) add(scaled, D.features(j, 0), offset.features(j, 0));
    const Tall<double>& slopes = sides_.two() && j >= sides_.right_first() ? slopes_of_right : slopes_of_left;
    for (Index c = 0; c < k; ++c) {
      const double removed = untied() ? 2 * static_cast<double>(at.signs[c] * at.A(j, c)) : 0;
      add(scaled.cwiseProduct(slopes.row(c)) - removed * squares, D.features(j, 1 + c), offset.features(j, 1 + c));
    }
    if (options_.shape.diagonal == Diagonal::free) add(squares, D.squares[j], offset.squares[j]);
  };

  std::vector<Tall<double>> sums(static_cast<std::size_t>(workers_.count()));
  std::atomic<bool> is_interrupted = false;
  workers_.split((dim() + DualBlock::max_features - 1) / DualBlock::max_features, [&](int worker, Share share) {
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

template RowSums<float> RowLooks<float>::dual_sums(const SignedFactors<float>&, const Direction<float>&,
                                                   const Direction<float>&) const;
template RowSums<double> RowLooks<double>::dual_sums(const SignedFactors<double>&, const Direction<double>&,
                                                     const Direction<double>&) const;
template bool LooksInMemory<float>::prefers_dual() const;
template bool LooksInMemory<double>::prefers_dual() const;
template RowSums<float> LooksInMemory<float>::dual_sums(const SignedFactors<float>&, const Direction<float>&,
                                                        const Direction<float>&) const;
template RowSums<double> LooksInMemory<double>::dual_sums(const SignedFactors<double>&, const Direction<double>&,
                                                          const Direction<double>&) const;

}  // namespace dyad
