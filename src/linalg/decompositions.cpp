#include "linalg/decompositions.h"

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
