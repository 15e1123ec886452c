#include "solvers/irls/matrix_free_irls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// Limits of the conjugate gradient iterations of one regression. With 1e-3 and 60 instead, as many fits succeed (gfm
/// at 1.3, sensing at 1.5 and bilinear at 1.2 rows per unknown, 10 seeds each), with more data passes.
constexpr double regression_tolerance = 1e-2;
constexpr int max_regression_iterations = 20;
/// First ratio of eps to |lambda|_k at which Gauss-Newton is tried, and its decrease after a failure (measured recipe
/// of matrix-free log-det IRLS).
constexpr double first_candidate_eps_ratio = 0.03;
constexpr double candidate_eps_decrease = 0.1;
/// Iterations before the first candidate: the estimate of the first ones contains the unresolved tail (same recipe).
constexpr int min_iterations = 4;
/// Limit of the iterations. 8 to 24 suffice with 1.2 to 1.5 rows per unknown.
constexpr int max_matrix_free_iterations = 100;
/// Blocks of the Krylov space: the first iteration starts from random vectors, later ones from the last result.
constexpr Index first_krylov_blocks = 10;
constexpr Index krylov_blocks = 4;

}  // namespace

MatrixFreeIrls::MatrixFreeIrls(const ObservedRows& rows, IrlsOptions options, ThreadPool& pool)
    : options_(std::move(options)),
      sides_(rows.dim(), options_.shape.left_dim),
      random_(options_.seed, start_stream),
      regression_(rows, options_.shape, pool),
      eps_(std::numeric_limits<double>::infinity()),
      candidate_eps_ratio_(first_candidate_eps_ratio),
      last_eps_(eps_) {
  regression_.set_prior(RowMajorMatrix<double>(rows.dim(), 0), Vector<double>(), 1);
  coefficients_.set_zero(rows.dim(), 0, 0, regression_.has_squares());
  const Index columns = std::min(options_.shape.rank + 2, options_.shape.max_rank());
  basis_ = random_normal<double>(random_, rows.dim(), columns);
}

std::optional<SignedFactors<double>> MatrixFreeIrls::next_candidate() {
  while (!is_finished_) {
    if (!iterate()) {
      is_finished_ = true;
      return std::nullopt;
    }
    if (eps_ < irls_progress_ratio * last_eps_) {
      last_eps_ = eps_;
      stalled_ = 0;
    } else {
      ++stalled_;
    }
    is_finished_ = stalled_ >= irls_patience_iterations || iterations_ >= max_matrix_free_iterations ||
                   (options_.interrupted && options_.interrupted());
    const double weakest = std::abs(spectrum_[options_.shape.rank - 1]);
    if (iterations_ >= min_iterations && eps_ < candidate_eps_ratio_ * weakest) {
      while (eps_ < candidate_eps_ratio_ * weakest) candidate_eps_ratio_ *= candidate_eps_decrease;
      is_finished_ = is_finished_ || eps_ <= std::numeric_limits<double>::epsilon() * weakest;
      return candidate();
    }
    if (is_finished_) return candidate();
  }
  return std::nullopt;
}

bool MatrixFreeIrls::iterate() {
  if (iterations_ > 0) {
    const Index k = options_.shape.rank;
    const Vector<double> strengths = (spectrum_.cwiseAbs().array() - eps_).cwiseMax(0);
    regression_.set_prior(basis_.leftCols(k), strengths, eps_);
    const Vector<double> weights = coefficients_.features.col(0);
    const Vector<double> squares = coefficients_.squares;
    const double intercept = coefficients_.intercept;
    coefficients_.set_zero(sides_.dim, k, regression_.core_size(), regression_.has_squares());
    coefficients_.intercept = intercept;
    coefficients_.features.col(0) = weights;
    coefficients_.squares = squares;
    for (Index j = 0; j < k; ++j)
      if (strengths[j] > 0) coefficients_.core[regression_.core_index(j, j)] = spectrum_[j] / strengths[j];
  }
  regression_.solve(coefficients_, regression_tolerance, max_regression_iterations);
  return update_factors();
}

bool MatrixFreeIrls::update_factors() {
  const Index k = options_.shape.rank;
  const Index side_dim = sides_.is_bilinear() ? std::min(sides_.left_count(), sides_.right_count()) : sides_.dim;
  const Index width = basis_.cols();
  const Index blocks = std::clamp<Index>(side_dim / width, 1, iterations_ == 0 ? first_krylov_blocks : krylov_blocks);
  // Basis of the Krylov space, block by block, and its product with the estimate.
  RowMajorMatrix<double> basis(sides_.dim, blocks * width);
  RowMajorMatrix<double> product(sides_.dim, blocks * width);
  RowMajorMatrix<double> block = sides_.orthonormal_sides<double>(basis_);
  for (Index b = 0; b < blocks; ++b) {
    const auto remove_projection = [&](auto side) {
      const auto previous = side(basis).leftCols(b * width);
      side(block) -= previous * (previous.transpose() * side(block)).eval();
    };
    for (int repeat = 0; repeat < 2 && b > 0; ++repeat) {
      remove_projection([&](auto& A) { return sides_.left(A); });
      if (sides_.is_bilinear()) remove_projection([&](auto& A) { return sides_.right(A); });
      block = sides_.orthonormal_sides<double>(block);
    }
    basis.middleCols(b * width, width) = block;
    block = regression_.multiply_estimate(coefficients_, block);
    if (!block.allFinite()) return false;
    product.middleCols(b * width, width) = block;
  }
  const Matrix<double> core = sides_.left(basis).transpose() * sides_.left(product);
  Vector<double> values;
  RowMajorMatrix<double> vectors(sides_.dim, basis.cols());
  if (sides_.is_bilinear()) {
    const Svd<double> svd = compute_svd(core);
    values = svd.values;
    vectors << sides_.left(basis) * svd.left, sides_.right(basis) * svd.right;
  } else {
    const SymmetricEigen<double> eigen = symmetric_eigen(core);
    values = options_.shape.positive ? Vector<double>(eigen.values.cwiseMax(0)) : eigen.values;
    vectors = basis * eigen.vectors;
  }
  std::vector<Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return std::abs(values[a]) > std::abs(values[b]); });
  spectrum_.resize(k);
  for (Index c = 0; c < width; ++c) {
    const Index j = order[static_cast<std::size_t>(c)];
    basis_.col(c) = vectors.col(j);
    if (c < k) spectrum_[c] = values[j];
  }
  const double tail = k < values.size() ? std::abs(values[order[static_cast<std::size_t>(k)]]) : 0;
  eps_ = std::max(std::min(eps_, tail), std::numeric_limits<double>::epsilon() * std::abs(spectrum_[0]));
  ++iterations_;
  return std::isfinite(eps_) && eps_ > 0;
}

SignedFactors<double> MatrixFreeIrls::candidate() const {
  const Index k = options_.shape.rank;
  SignedFactors<double> result;
  result.left_dim = options_.shape.left_dim;
  result.diagonal = options_.shape.diagonal;
  result.intercept = coefficients_.intercept;
  result.weights = coefficients_.features.col(0);
  const Vector<double> sizes = spectrum_.cwiseAbs().cwiseMax(std::numeric_limits<double>::min());
  result.A = basis_.leftCols(k) * sizes.cwiseSqrt().asDiagonal();
  result.signs = spectrum_.unaryExpr([](double value) { return value < 0 ? -1.0 : 1.0; });
  if (!sides_.is_bilinear() && options_.shape.diagonal == Diagonal::free)
    result.squares = coefficients_.squares + result.A.cwiseAbs2() * result.signs;  // total coefficient of x_j^2
  return result;
}

}  // namespace dyad
