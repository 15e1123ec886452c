#include "solvers/irls/log_det_irls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <Eigen/Cholesky>

#include "linalg/blocked_cholesky.h"
#include "linalg/decompositions.h"
#include "linalg/gemm.h"

namespace dyad {
namespace {

/// Largest number of rows: K takes 32 MB, and its decomposition n^3 / 3 = 3e9 multiplications per iteration.
constexpr Index max_irls_rows = 2048;
/// Largest number of features of a side: the eigendecomposition of a d x d matrix takes about 10 d^3 multiplications.
constexpr Index max_irls_dim = 1024;
/// Relative jitter of K, a small multiple of the double rounding error, which keeps its Cholesky decomposition finite.
constexpr double relative_kernel_jitter = 1e-14;
/// Ratio of eps to the largest eigenvalue below which Gauss-Newton converges quadratically.
constexpr double converged_eps_ratio = 1e-7;
/// Limit of the iterations per candidate (same recipe).
constexpr int max_candidate_iterations = 200;
/// Range of the level of the perturbed spectrum, in units of |lambda|_k (same recipe).
constexpr double min_perturbation = 0.3;
constexpr double max_perturbation = 1.5;

/// Rows of positive weight, as a dense matrix.
RowMajorMatrix<double> copy_rows(const ObservedRows& rows, const std::vector<Index>& used) {
  RowMajorMatrix<double> result(static_cast<Index>(used.size()), rows.dim());
  for (std::size_t i = 0; i < used.size(); ++i)
    rows.X().copy_rows({used[i], 1}, result.row(static_cast<Index>(i)).data());
  return result;
}

/// A B.
RowMajorMatrix<double> multiply(const RowMajorMatrix<double>& A, const RowMajorMatrix<double>& B) {
  RowMajorMatrix<double> result(A.rows(), B.cols());
  gemm<double>(A.rows(), B.cols(), A.cols(), 1, {A.data(), A.cols()}, {B.data(), B.cols()}, 0, result.data(), B.cols());
  return result;
}

/// A'B.
RowMajorMatrix<double> multiply_transposed(const RowMajorMatrix<double>& A, const RowMajorMatrix<double>& B) {
  RowMajorMatrix<double> result(A.cols(), B.cols());
  gemm<double>(A.cols(), B.cols(), A.rows(), 1, {A.data(), A.cols(), Operation::transpose}, {B.data(), B.cols()}, 0,
               result.data(), B.cols());
  return result;
}

/// Lower triangle of A A'. The upper triangle is undefined.
RowMajorMatrix<double> compute_kernel(const RowMajorMatrix<double>& A) {
  constexpr Index block_rows = 64;  // each block computes at most this many columns above the diagonal
  const Index n = A.rows();
  RowMajorMatrix<double> result = RowMajorMatrix<double>::Zero(n, n);
  for (Index first = 0; first < n; first += block_rows) {
    const Index count = std::min(block_rows, n - first);
    gemm<double>(count, first + count, A.cols(), 1, {A.row(first).data(), A.cols()},
                 {A.data(), A.cols(), Operation::transpose}, 0, result.row(first).data(), n);
  }
  return result;
}

}  // namespace

RowMajorMatrix<double> LogDetIrls::Side::scaled_rows() const { return multiply(X, U) * s.cwiseSqrt().asDiagonal(); }

bool LogDetIrls::can_solve(const ObservedRows& rows, const ModelShape& shape) {
  const Index left = shape.is_bilinear() ? shape.left_dim : rows.dim();
  return rows.count() <= max_irls_rows && std::max(left, rows.dim() - left) <= max_irls_dim &&
         shape.rank < std::min(left, shape.max_rank());
}

LogDetIrls::LogDetIrls(const ObservedRows& rows, IrlsOptions options)
    : options_(std::move(options)), random_(options_.seed, start_stream) {
  std::vector<Index> used;
  for (Index i = 0; i < rows.count(); ++i)
    if (rows.weights()[i] > 0) used.push_back(i);
  const auto n = static_cast<Index>(used.size());
  targets_.resize(n);
  for (Index i = 0; i < n; ++i) targets_[i] = rows.targets()[used[static_cast<std::size_t>(i)]];
  const ModelShape& shape = options_.shape;
  const Index left_dim = is_bilinear() ? shape.left_dim : rows.dim();
  const RowMajorMatrix<double> X = copy_rows(rows, used);
  left_.X = X.leftCols(left_dim);
  if (is_bilinear()) right_.X = X.rightCols(rows.dim() - left_dim);
  const bool has_squares = !is_bilinear() && shape.diagonal != Diagonal::tied;
  const Index flat_count = (shape.intercept ? 1 : 0) + (shape.linear ? rows.dim() : 0) + (has_squares ? left_dim : 0);
  flat_features_.resize(n, flat_count);
  Index column = 0;
  if (shape.intercept) flat_features_.col(column++).setOnes();
  if (shape.linear) {
    flat_features_.middleCols(column, left_dim) = left_.X;
    column += left_dim;
    if (is_bilinear()) {
      flat_features_.middleCols(column, right_.X.cols()) = right_.X;
      column += right_.X.cols();
    }
  }
  if (has_squares) flat_features_.middleCols(column, left_dim) = left_.X.cwiseAbs2();
  for (Side* side : {&left_, &right_}) {
    side->U = RowMajorMatrix<double>::Identity(side->X.cols(), side->X.cols());
    side->s = Vector<double>::Ones(side->X.cols());
  }
}

std::optional<SignedFactors<double>> LogDetIrls::next_candidate() {
  if (has_result_) perturb();
  eps_ = std::numeric_limits<double>::infinity();
  double last_eps = eps_;
  int stalled = 0;
  for (int i = 0; i < max_candidate_iterations; ++i) {
    if (!iterate()) break;
    if (eps_ < converged_eps_ratio * std::abs(spectrum_[order_.front()])) break;
    if (options_.interrupted && options_.interrupted()) break;
    if (eps_ < irls_progress_ratio * last_eps) {
      last_eps = eps_;
      stalled = 0;
    } else if (++stalled >= irls_patience_iterations) {
      break;
    }
  }
  has_result_ = std::isfinite(eps_);
  return has_result_ ? std::optional(candidate()) : std::nullopt;
}

bool LogDetIrls::iterate() {
  ++iterations_;
  const Index n = targets_.size();
  const RowMajorMatrix<double> P = left_.scaled_rows();
  const RowMajorMatrix<double> Q = is_bilinear() ? right_.scaled_rows() : RowMajorMatrix<double>();
  RowMajorMatrix<double> K = compute_kernel(P);
  if (is_bilinear())
    K.array() *= compute_kernel(Q).array();
  else
    K.array() *= K.array();
  K.diagonal().array() += relative_kernel_jitter * K.trace() / static_cast<double>(n);
  const Cholesky cholesky(std::move(K));
  if (!cholesky.is_positive_definite()) return false;
  Vector<double> half_alpha = cholesky.solve_lower(targets_);  // L^-1 y, then L^-1 (y - F w)
  Vector<double> flat = Vector<double>::Zero(flat_features_.cols());
  if (flat_features_.cols() > 0) {
    const RowMajorMatrix<double> half_F = cholesky.solve_lower(flat_features_);
    const Matrix<double> precision = multiply_transposed(half_F, half_F);
    flat = precision.ldlt().solve(half_F.transpose() * half_alpha);
    half_alpha -= half_F * flat;
  }
  const Vector<double> alpha = cholesky.solve_upper(half_alpha);
  if (!alpha.allFinite() || !flat.allFinite()) return false;
  flat_ = std::move(flat);
  const Index k = options_.shape.rank;
  const RowMajorMatrix<double> weighted = alpha.asDiagonal() * (is_bilinear() ? Q : P);
  const auto right_root = (is_bilinear() ? right_ : left_).s.cwiseSqrt();
  const Matrix<double> core =
      left_.s.cwiseSqrt().asDiagonal() * multiply_transposed(P, weighted) * right_root.asDiagonal();
  if (is_bilinear()) {
    const Svd<double> svd = compute_svd(core);
    left_.U = multiply(left_.U, svd.left);
    right_.U = multiply(right_.U, svd.right);
    spectrum_ = svd.values;
  } else {
    const SymmetricEigen<double> eigen = symmetric_eigen(core);
    left_.U = multiply(left_.U, eigen.vectors);
    spectrum_ = eigen.values;
    if (options_.shape.positive) spectrum_ = spectrum_.cwiseMax(0);
  }
  order_.resize(static_cast<std::size_t>(spectrum_.size()));
  std::iota(order_.begin(), order_.end(), Index{0});
  std::sort(order_.begin(), order_.end(),
            [&](Index a, Index b) { return std::abs(spectrum_[a]) > std::abs(spectrum_[b]); });
  eps_ = std::min(eps_, std::abs(spectrum_[order_[static_cast<std::size_t>(k)]]));
  for (Side* side : {&left_, &right_}) {
    side->s = Vector<double>::Constant(side->X.cols(), eps_);
    const Index shared = std::min<Index>(side->s.size(), spectrum_.size());
    side->s.head(shared) = spectrum_.head(shared).cwiseAbs().cwiseMax(eps_);
  }
  return true;
}

/// Removes one of the leading directions and raises the others to random levels.
void LogDetIrls::perturb() {
  const auto k = static_cast<std::size_t>(options_.shape.rank);
  const double level = std::abs(spectrum_[order_[k - 1]]) *
                       (min_perturbation + (max_perturbation - min_perturbation) * random_.uniform());
  const auto removed = order_[std::min(k - 1, static_cast<std::size_t>(random_.uniform() * static_cast<double>(k)))];
  for (Side* side : {&left_, &right_})
    for (Index j = 0; j < side->s.size(); ++j) {
      const double known = j < spectrum_.size() && j != removed ? std::abs(spectrum_[j]) : 0;
      side->s[j] = std::max(known, -level * std::log1p(-random_.uniform()));
    }
}

SignedFactors<double> LogDetIrls::candidate() const {
  const ModelShape& shape = options_.shape;
  const Index dim = left_.X.cols() + right_.X.cols();
  SignedFactors<double> result;
  result.left_dim = shape.left_dim;
  result.diagonal = shape.diagonal;
  result.weights = Vector<double>::Zero(dim);
  result.A = RowMajorMatrix<double>::Zero(dim, shape.rank);
  result.signs = Vector<double>::Ones(shape.rank);
  for (Index c = 0; c < shape.rank; ++c) {
    const Index j = order_[static_cast<std::size_t>(c)];
    const double root = std::sqrt(std::max(std::abs(spectrum_[j]), std::numeric_limits<double>::min()));
    result.A.col(c).head(left_.X.cols()) = root * left_.U.col(j);
    if (is_bilinear()) result.A.col(c).tail(right_.X.cols()) = root * right_.U.col(j);
    if (!is_bilinear() && spectrum_[j] < 0) result.signs[c] = -1;
  }
  Index column = 0;
  if (shape.intercept) result.intercept = flat_[column++];
  if (shape.linear) {
    result.weights = flat_.segment(column, dim);
    column += dim;
  }
  if (!is_bilinear() && shape.diagonal == Diagonal::free)
    result.squares = flat_.segment(column, dim) + (result.A.cwiseAbs2() * result.signs);  // total coefficient of x_j^2
  return result;
}

}  // namespace dyad
