#include <algorithm>

#include <Eigen/QR>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// Q [B; 0] for the product Q of Householder reflections.
Small<double> apply(const Small<double>& reflections, const Vector<double>& coefficients, const Small<double>& B) {
  Small<double> result = Small<double>::Zero(reflections.rows(), B.cols());
  result.topRows(B.rows()) = B;
  result.applyOnTheLeft(Eigen::householderSequence(reflections, coefficients));
  return result;
}

}  // namespace

template <typename Scalar>
ThinQr<Scalar>::ThinQr(const Small<Scalar>& A) {
  const Eigen::HouseholderQR<Small<double>> qr(A.template cast<double>());
  reflections_ = qr.matrixQR();
  coefficients_ = qr.hCoeffs();
}

template <typename Scalar>
Small<Scalar> ThinQr<Scalar>::R() const {
  const Small<double> upper = reflections_.topRows(coefficients_.size()).triangularView<Eigen::Upper>();
  return upper.cast<Scalar>();
}

template <typename Scalar>
Small<Scalar> ThinQr<Scalar>::Q_times(const Small<Scalar>& B) const {
  return apply(reflections_, coefficients_, B.template cast<double>()).template cast<Scalar>();
}

template <typename Scalar>
Tall<Scalar> orthonormal(const Tall<Scalar>& A) {
  return ThinQr<Scalar>(A).Q_times(Small<Scalar>::Identity(A.cols(), A.cols()));
}

template <typename Scalar>
Small<Scalar> pseudo_inverse(const Small<Scalar>& A) {
  const Small<double> inverse = A.template cast<double>().completeOrthogonalDecomposition().pseudoInverse();
  return inverse.cast<Scalar>();
}

template class ThinQr<float>;
template class ThinQr<double>;
template Small<float> pseudo_inverse(const Small<float>&);
template Small<double> pseudo_inverse(const Small<double>&);
template Tall<float> orthonormal(const Tall<float>&);
template Tall<double> orthonormal(const Tall<double>&);

}  // namespace dyad
