#include <algorithm>

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
ThinQr<Scalar>::ThinQr(const Matrix<Scalar>& A) {
  const Eigen::HouseholderQR<Matrix<double>> qr(A.template cast<double>());
  reflections_ = qr.matrixQR();
  coefficients_ = qr.hCoeffs();
}

template <typename Scalar>
Matrix<Scalar> ThinQr<Scalar>::R() const {
  const Matrix<double> upper = reflections_.topRows(coefficients_.size()).triangularView<Eigen::Upper>();
  return upper.cast<Scalar>();
}

template <typename Scalar>
Matrix<Scalar> ThinQr<Scalar>::apply_Q(const Matrix<Scalar>& B) const {
  return apply_reflections(reflections_, coefficients_, B.template cast<double>()).template cast<Scalar>();
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
