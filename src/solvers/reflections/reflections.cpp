#include "solvers/reflections/reflections.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linalg/decompositions.h"
#include "linalg/row_products.h"

namespace dyad {
namespace {

/// Largest number of entries of the copied rows: 320 MB.
constexpr Index max_copied_entries = 40'000'000;
/// Step length; iterations converge for values in (0, 2). 0.5 is the value of the measured recipe for real signals.
constexpr double relaxation = 0.5;
/// Relative distance of the sets from which Gauss-Newton converges quadratically.
constexpr double converged_distance = 1e-6;
/// Power iterations of the spectral start. It only needs to be in the right half-space of directions.
constexpr int power_iterations = 30;

/// View of a dense matrix as rows without targets.
Rows<double> view_of(const RowMajorMatrix<double>& matrix) {
  return Rows<double>::dense({matrix.data(), static_cast<std::size_t>(matrix.size())}, matrix.cols(), {});
}

}  // namespace

bool Reflections::can_solve(const ObservedRows& rows, const ModelShape& shape) {
  return shape.is_measurement() && !shape.is_bilinear() && shape.diagonal == Diagonal::tied &&
         rows.count() <= max_copied_entries / std::max<Index>(1, rows.dim());
}

Reflections::Reflections(const ObservedRows& rows, ReflectionOptions options) : options_(std::move(options)) {
  const Index d = rows.dim();
  std::vector<Index> used;
  for (Index i = 0; i < rows.count(); ++i)
    if (rows.weights()[i] > 0) used.push_back(i);
  const auto n = static_cast<Index>(used.size());
  Vector<double> targets(n);
  X_.resize(n, d);
  for (Index i = 0; i < n; ++i) {
    const Index row = used[static_cast<std::size_t>(i)];
    rows.X().copy_rows({row, 1}, X_.row(i).data());
    targets[i] = std::max(0.0, options_.sign * rows.targets()[row]);
  }
  amplitudes_ = targets.cwiseSqrt();
  Matrix<double> gram = Matrix<double>::Zero(d, d);
  gram.selfadjointView<Eigen::Lower>().rankUpdate(X_.transpose());
  // Keeps the decomposition finite if columns are linearly dependent.
  const double jitter = std::numeric_limits<double>::epsilon() * static_cast<double>(d) * gram.diagonal().maxCoeff();
  gram.diagonal().array() += std::max(jitter, std::numeric_limits<double>::min());
  gram_.compute(gram);
  // Restarts are for many iterations, which repay the n^2 d multiplications of the projection.
  constexpr double max_projector_work = 3e9;  // multiplications, a tenth of those of the iterations
  if (options_.starts > 1 && n <= 2 * d && std::pow(n, 2) * static_cast<double>(d) <= max_projector_work) {
    const Matrix<double> half = gram_.matrixL().solve(X_.transpose());
    projector_ = half.transpose() * half;
  }
  Random random(options_.seed, start_stream);
  const Index k = options_.shape.rank;
  RowMajorMatrix<double> Z = random_normal<double>(random, d, k * options_.starts);
  Z.leftCols(k) = compute_spectral_start(targets, random);
  u_.resize(n, Z.cols());
  multiply(Z, u_);
  for (Index start = 0; start < options_.starts; ++start) {
    auto columns = u_.middleCols(start * k, k);
    const double norm = columns.norm();
    columns *= norm > 0 ? amplitudes_.norm() / norm : 0;
  }
}

/// Leading eigenvectors of (X'X)^-1 X' diag(T) X with T = (y - 1) / (y + sqrt(n/d) - 1) for targets of mean 1.
RowMajorMatrix<double> Reflections::compute_spectral_start(const Vector<double>& targets, Random& random) const {
  const Index d = X_.cols();
  const double mean = std::max(targets.mean(), std::numeric_limits<double>::min());
  const double ratio = std::sqrt(static_cast<double>(targets.size()) / static_cast<double>(d));
  // T lies in [-1, 1). Adding 1 makes the eigenvalues non-negative.
  const Vector<double> shifted = targets.unaryExpr([&](double y) {
    return 1 + std::max(-1.0, (y / mean - 1) / std::max(y / mean + ratio - 1, std::numeric_limits<double>::min()));
  });
  RowMajorMatrix<double> Z = random_normal<double>(random, d, options_.shape.rank);
  RowMajorMatrix<double> projected(X_.rows(), Z.cols());
  for (int i = 0; i < power_iterations; ++i) {
    multiply(Z, projected);
    projected = shifted.asDiagonal() * projected;
    solve_least_squares(projected, Z);
    Z = orthonormalize(Z);
  }
  return Z;
}

void Reflections::multiply(const RowMajorMatrix<double>& Z, RowMajorMatrix<double>& out) const {
  project(view_of(X_), Z.data(), Z.cols(), out.data());
}

void Reflections::solve_least_squares(const RowMajorMatrix<double>& u, RowMajorMatrix<double>& Z) const {
  Z.setZero();
  add_back_projection(view_of(X_), u.data(), u.cols(), Z.data());
  gram_.solveInPlace(Z);
}

void Reflections::project_on_columns(const RowMajorMatrix<double>& u, RowMajorMatrix<double>& Z,
                                     RowMajorMatrix<double>& out) const {
  if (projector_.size() > 0) return project(view_of(projector_), u.data(), u.cols(), out.data());
  solve_least_squares(u, Z);
  multiply(Z, out);
}

void Reflections::project_on_amplitudes(Index start, RowMajorMatrix<double>& out) const {
  const Index k = options_.shape.rank;
  for (Index i = 0; i < u_.rows(); ++i) {
    const double* from = u_.row(i).data() + start * k;
    double* to = out.row(i).data() + start * k;
    double squares = 0;
    for (Index c = 0; c < k; ++c) squares += from[c] * from[c];
    const double factor = squares > 0 ? amplitudes_[i] / std::sqrt(squares) : 0;
    for (Index c = 0; c < k; ++c) to[c] = factor * from[c];
  }
}

void Reflections::run(Index iterations) {
  const Index k = options_.shape.rank;
  const double size = amplitudes_.norm();
  double best_distance = std::numeric_limits<double>::infinity();
  RowMajorMatrix<double> on_amplitudes(u_.rows(), u_.cols());
  RowMajorMatrix<double> Z(X_.cols(), u_.cols());
  RowMajorMatrix<double> reflected(u_.rows(), u_.cols());
  RowMajorMatrix<double> gap(u_.rows(), u_.cols());
  if (gram_.info() != Eigen::Success) return;
  for (Index i = 0; i < iterations && !has_converged_; ++i) {
    if (options_.interrupted && options_.interrupted()) break;
    for (Index start = 0; start < options_.starts; ++start) project_on_amplitudes(start, on_amplitudes);
    reflected = 2 * on_amplitudes - u_;
    project_on_columns(reflected, Z, gap);
    gap -= on_amplitudes;
    ++iterations_;
    const Eigen::RowVectorXd squares = gap.colwise().squaredNorm();
    for (Index start = 0; start < options_.starts; ++start) {
      const double distance = std::sqrt(squares.segment(start * k, k).sum());
      if (!(distance < best_distance)) continue;
      best_distance = distance;
      best_ = reflected.middleCols(start * k, k);
    }
    has_converged_ = best_distance <= converged_distance * size;
    u_ += relaxation * gap;
  }
}

SignedFactors<double> Reflections::candidate() const {
  SignedFactors<double> result;
  result.diagonal = options_.shape.diagonal;
  result.weights = Vector<double>::Zero(X_.cols());
  result.A = RowMajorMatrix<double>::Zero(X_.cols(), options_.shape.rank);
  if (best_.size() > 0) solve_least_squares(best_, result.A);
  result.signs = Vector<double>::Constant(options_.shape.rank, options_.sign);
  return result;
}

}  // namespace dyad
