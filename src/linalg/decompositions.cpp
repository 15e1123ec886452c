#include "linalg/decompositions.h"

#include <type_traits>

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

namespace dyad {

template <typename Scalar>
SymmetricEigen<Scalar> symmetric_eigen(const Small<Scalar>& A) {
  if constexpr (std::is_same_v<Scalar, double>) {
    const Eigen::SelfAdjointEigenSolver<Small<double>> eigen((A + A.transpose()) / 2);
    return {eigen.eigenvalues(), eigen.eigenvectors()};
  } else {
    const SymmetricEigen<double> eigen = symmetric_eigen<double>(A.template cast<double>());
    return {eigen.values.cast<Scalar>(), eigen.vectors.cast<Scalar>()};
  }
}

template <typename Scalar>
SingularValues<Scalar> singular_values(const Small<Scalar>& A) {
  if constexpr (std::is_same_v<Scalar, double>) {
    const Eigen::JacobiSVD<Small<double>> svd(A, Eigen::ComputeFullU | Eigen::ComputeFullV);
    return {svd.matrixU(), svd.singularValues(), svd.matrixV()};
  } else {
    const SingularValues<double> svd = singular_values<double>(A.template cast<double>());
    return {svd.left.cast<Scalar>(), svd.values.cast<Scalar>(), svd.right.cast<Scalar>()};
  }
}

template SymmetricEigen<float> symmetric_eigen(const Small<float>&);
template SymmetricEigen<double> symmetric_eigen(const Small<double>&);
template SingularValues<float> singular_values(const Small<float>&);
template SingularValues<double> singular_values(const Small<double>&);

}  // namespace dyad
