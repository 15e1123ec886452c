#include "base/decompositions.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

namespace dyad {

template <typename Scalar>
SymmetricEigen<Scalar> symmetric_eigen(const Small<Scalar>& A) {
  const Eigen::SelfAdjointEigenSolver<Small<Scalar>> eigen((A + A.transpose()) / 2);
  return {eigen.eigenvalues(), eigen.eigenvectors()};
}

template <typename Scalar>
SingularValues<Scalar> singular_values(const Small<Scalar>& A) {
  const Eigen::JacobiSVD<Small<Scalar>> svd(A, Eigen::ComputeFullU | Eigen::ComputeFullV);
  return {svd.matrixU(), svd.singularValues(), svd.matrixV()};
}

template <typename Scalar>
Small<Scalar> pseudo_inverse(const Small<Scalar>& A) {
  return A.completeOrthogonalDecomposition().pseudoInverse();
}

template SymmetricEigen<float> symmetric_eigen(const Small<float>&);
template SymmetricEigen<double> symmetric_eigen(const Small<double>&);
template SingularValues<float> singular_values(const Small<float>&);
template SingularValues<double> singular_values(const Small<double>&);
template Small<float> pseudo_inverse(const Small<float>&);
template Small<double> pseudo_inverse(const Small<double>&);

}  // namespace dyad
