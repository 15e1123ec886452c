#include "base/linear_algebra.h"

#include <Eigen/QR>

namespace dyad {

template <typename Scalar>
Tall<Scalar> orthonormal(const Tall<Scalar>& A) {
  const Eigen::HouseholderQR<Small<Scalar>> qr(A);
  Small<Scalar> Q = Small<Scalar>::Identity(A.rows(), A.cols());
  Q.applyOnTheLeft(qr.householderQ());
  return Q;
}

template <typename Scalar>
Tall<Scalar> random_normal(Random& random, Index rows, Index columns) {
  return Tall<Scalar>::NullaryExpr(rows, columns, [&](Index, Index) { return static_cast<Scalar>(random.normal()); });
}

template Tall<float> orthonormal(const Tall<float>&);
template Tall<double> orthonormal(const Tall<double>&);
template Tall<float> random_normal(Random&, Index, Index);
template Tall<double> random_normal(Random&, Index, Index);

}  // namespace dyad
