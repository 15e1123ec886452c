#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <Eigen/Dense>

#include <dyad/model.h>
#include <dyad/rows.h>

#include "base/random.h"
#include "base/thread_pool.h"
#include "linalg/matrix.h"
#include "model/sides.h"

namespace dyad::test {

/// Shared pool of two threads, for tests that do not depend on the number of threads.
inline ThreadPool& pool() {
  static ThreadPool shared_pool(2);
  return shared_pool;
}

/// Rows in dense and sparse layout. Owns its numbers.
template <typename Scalar>
struct OwnedRows {
  RowMajorMatrix<Scalar> X;
  std::vector<Scalar> targets;
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<Scalar> values;

  OwnedRows(RowMajorMatrix<Scalar> matrix, std::vector<Scalar> y) : X(std::move(matrix)), targets(std::move(y)) {
    for (Index i = 0; i < X.rows(); ++i) {
      for (Index j = 0; j < X.cols(); ++j) {
        if (X(i, j) == 0) continue;
        columns.push_back(static_cast<std::int32_t>(j));
        values.push_back(X(i, j));
      }
      offsets.push_back(static_cast<Index>(values.size()));
    }
  }

  [[nodiscard]] Rows<Scalar> dense() const {
    return Rows<Scalar>::dense({X.data(), static_cast<std::size_t>(X.size())}, X.cols(), targets);
  }
  [[nodiscard]] Rows<Scalar> sparse() const {
    return Rows<Scalar>::sparse(offsets, columns, values, X.cols(), targets);
  }
};

/// Standard normal features and targets. Each feature is nonzero with probability `density`.
template <typename Scalar>
OwnedRows<Scalar> random_rows(Index count, Index dim, std::uint64_t seed, double density = 1) {
  Random random(seed, 0);
  RowMajorMatrix<Scalar> X = random_normal<Scalar>(random, count, dim);
  for (Index i = 0; i < X.size(); ++i)
    if (random.uniform() > density) X.data()[i] = 0;
  std::vector<Scalar> y(static_cast<std::size_t>(count));
  for (Scalar& target : y) target = static_cast<Scalar>(random.normal());
  return {std::move(X), std::move(y)};
}

/// Model with standard normal intercept, weights and spectrum, and random orthonormal factors.
template <typename Scalar>
Model<Scalar> random_model(Index dim, Index rank, std::uint64_t seed, Index left_dim = 0) {
  Random random(seed, 1);
  Model<Scalar> model(dim, rank, left_dim);
  model.intercept = static_cast<Scalar>(random.normal());
  as_vector(model.weights) = random_normal<Scalar>(random, dim, 1);
  as_row_major(model.factors, dim, rank) =
      Sides(model).orthonormal_sides<Scalar>(random_normal<Scalar>(random, dim, rank));
  as_vector(model.spectrum) = random_normal<Scalar>(random, rank, 1);
  return model;
}

/// The matrix M of interactions.
template <typename Scalar>
Matrix<Scalar> dense_interactions(const Model<Scalar>& model) {
  const Sides sides(model);
  const auto U = as_row_major(model.factors, model.dim(), model.rank());
  return sides.left(U) * as_vector(model.spectrum).asDiagonal() * sides.right(U).transpose();
}

/// Predictions from the definition of the model, y = b + w'x + x'Mx.
template <typename Scalar>
Vector<Scalar> brute_force_predictions(const Model<Scalar>& model, const RowMajorMatrix<Scalar>& X) {
  const Matrix<Scalar> M = dense_interactions(model);
  const Index right_first = model.left_dim;
  Vector<Scalar> f(X.rows());
  for (Index i = 0; i < X.rows(); ++i) {
    const auto x = X.row(i);
    f[i] = model.intercept + x.dot(as_vector(model.weights)) +
           (x.head(M.rows()) * M).dot(x.tail(model.dim() - right_first));
    for (std::size_t j = 0; j < model.squares.size(); ++j)
      f[i] += model.squares[j] * x[static_cast<Index>(j)] * x[static_cast<Index>(j)];
  }
  return f;
}

/// Best rank-k approximation of a symmetric matrix in the Frobenius norm, from its eigendecomposition. `positive`:
/// among positive semidefinite matrices.
inline Eigen::MatrixXd brute_force_rank_k(const Eigen::MatrixXd& A, Index k, bool positive = false) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(A);
  std::vector<Index> order;
  for (Index i = 0; i < A.rows(); ++i)
    if (!positive || eigen.eigenvalues()[i] > 0) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](Index i, Index j) { return std::abs(eigen.eigenvalues()[i]) > std::abs(eigen.eigenvalues()[j]); });
  Eigen::MatrixXd approximation = Eigen::MatrixXd::Zero(A.rows(), A.cols());
  for (Index c = 0; c < std::min<Index>(k, static_cast<Index>(order.size())); ++c) {
    const Index i = order[static_cast<std::size_t>(c)];
    approximation += eigen.eigenvalues()[i] * eigen.eigenvectors().col(i) * eigen.eigenvectors().col(i).transpose();
  }
  return approximation;
}

}  // namespace dyad::test
