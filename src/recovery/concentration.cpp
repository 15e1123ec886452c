#include "recovery/concentration.h"

#include "linalg/decompositions.h"

namespace dyad {

ConcentrationErrors measure_concentration(const RowMajorMatrix<double>& rows, const Matrix<double>& M,
                                          const Vector<double>& w) {
  const auto n = static_cast<double>(rows.rows());
  const Matrix<double> I = Matrix<double>::Identity(M.rows(), M.cols());
  const Vector<double> AM = (rows * M).cwiseProduct(rows).rowwise().sum();
  const Vector<double> Xw = rows * w;
  ConcentrationErrors errors;
  errors.ci_rip = rows.transpose() * AM.asDiagonal() * rows / (2 * n) - M.trace() / 2 * I - M;
  errors.trace = AM.mean() - M.trace();
  errors.mean = Xw.mean();
  errors.linear = rows.transpose() * Xw.asDiagonal() * rows / n;
  errors.quadratic = rows.transpose() * AM / n;
  errors.covariance = rows.transpose() * rows / n - I;
  return errors;
}

double spectral_norm(const Matrix<double>& A) { return symmetric_eigen<double>(A).values.cwiseAbs().maxCoeff(); }

}  // namespace dyad
