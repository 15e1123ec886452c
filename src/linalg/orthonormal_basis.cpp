#include <algorithm>
#include <type_traits>
#include <utility>

#include <Eigen/QR>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// Q [B; 0], where Q is the product of the Householder reflections and zeros extend B to the rows of Q.
Matrix<double> apply_reflections(const Matrix<double>& reflections, const Vector<double>& coefficients,
                                 const Matrix<double>& B) {
  Matrix<double> result = Matrix<double>::Zero(reflections.rows(), B.cols());
  result.topRows(B.rows()) = B;
  result.applyOnTheLeft(Eigen::householderSequence(reflections, coefficients));
  return result;
}

}  // namespace

template <typename Scalar>
ThinQr<Scalar>::ThinQr(Matrix<Scalar> A) {
  if constexpr (std::is_same_v<Scalar, double>)
    reflections_ = std::move(A);
  else
    reflections_ = A.template cast<double>();
  const Eigen::HouseholderQR<Eigen::Ref<Matrix<double>>> qr(reflections_);  // in place
  coefficients_ = qr.hCoeffs();
}

template <typename Scalar>
Matrix<Scalar> ThinQr<Scalar>::R() const {
  const Matrix<double> upper = reflections_.topRows(coefficients_.size()).triangularView<Eigen::Upper>();
  return upper.cast<Scalar>();
}

template <typename Scalar>
Matrix<Scalar> ThinQr<Scalar>::apply_Q(const Matrix<Scalar>& B) const {
  Matrix<double> product = apply_reflections(reflections_, coefficients_, B.template cast<double>());
  if constexpr (std::is_same_v<Scalar, double>)
    return product;
  else
    return product.template cast<Scalar>();
}

template <typename Scalar>
RowMajorMatrix<Scalar> orthonormalize(const RowMajorMatrix<Scalar>& A) {
  return ThinQr<Scalar>(A).apply_Q(Matrix<Scalar>::Identity(A.cols(), A.cols()));
}

template <typename Scalar>
Matrix<Scalar> pseudo_inverse(const Matrix<Scalar>& A) {
  const Matrix<double> inverse = A.template cast<double>().completeOrthogonalDecomposition().pseudoInverse();
  return inverse.cast<Scalar>();
}

template class ThinQr<float>;
template class ThinQr<double>;
template Matrix<float> pseudo_inverse(const Matrix<float>&);
template Matrix<double> pseudo_inverse(const Matrix<double>&);
template RowMajorMatrix<float> orthonormalize(const RowMajorMatrix<float>&);
template RowMajorMatrix<double> orthonormalize(const RowMajorMatrix<double>&);

}  // namespace dyad
