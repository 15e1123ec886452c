#include "linalg/decompositions.h"

#include <cmath>
#include <type_traits>

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

namespace dyad {

template <typename Scalar>
SymmetricEigen<Scalar> symmetric_eigen(const Matrix<Scalar>& A) {
  if constexpr (std::is_same_v<Scalar, double>) {
    const Eigen::SelfAdjointEigenSolver<Matrix<double>> eigen((A + A.transpose()) / 2);
    return {eigen.eigenvalues(), eigen.eigenvectors()};
  } else {
    const SymmetricEigen<double> eigen = symmetric_eigen<double>(A.template cast<double>());
    return {eigen.values.cast<Scalar>(), eigen.vectors.cast<Scalar>()};
  }
}

SymmetricTridiagonal tridiagonalize(const Matrix<double>& A, const Vector<double>& a) {
  if (A.rows() == 1) return {A.diagonal(), Vector<double>(0), a};
  const Eigen::Tridiagonalization<Matrix<double>> tridiagonal(A);
  Vector<double> rotated = a;
  rotated.applyOnTheLeft(tridiagonal.matrixQ().adjoint());
  return {tridiagonal.diagonal(), tridiagonal.subDiagonal(), rotated};
}

double SymmetricTridiagonal::log_evidence_gain(double theta) const {
  double pivot = 1 + theta * diagonal[0];
  double solution = rotated[0];
  double quadratic = solution * solution / pivot;
  double log_det = std::log(pivot);
  for (Index i = 1; i < diagonal.size(); ++i) {
    const double coupling = theta * subdiagonal[i - 1];
    solution = rotated[i] - coupling / pivot * solution;
    pivot = 1 + theta * diagonal[i] - coupling * coupling / pivot;
    quadratic += solution * solution / pivot;
    log_det += std::log(pivot);
  }
  return 0.5 * (theta * quadratic - log_det);
}

template <typename Scalar>
Svd<Scalar> compute_svd(const Matrix<Scalar>& A) {
  if constexpr (std::is_same_v<Scalar, double>) {
    const Eigen::JacobiSVD<Matrix<double>> svd(A, Eigen::ComputeFullU | Eigen::ComputeFullV);
    return {svd.matrixU(), svd.singularValues(), svd.matrixV()};
  } else {
    const Svd<double> svd = compute_svd<double>(A.template cast<double>());
    return {svd.left.cast<Scalar>(), svd.values.cast<Scalar>(), svd.right.cast<Scalar>()};
  }
}

template SymmetricEigen<float> symmetric_eigen(const Matrix<float>&);
template SymmetricEigen<double> symmetric_eigen(const Matrix<double>&);
template Svd<float> compute_svd(const Matrix<float>&);
template Svd<double> compute_svd(const Matrix<double>&);

}  // namespace dyad
