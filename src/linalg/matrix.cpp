#include "linalg/matrix.h"

namespace dyad {

template <typename Scalar>
RowMajorMatrix<Scalar> random_normal(Random& random, Index rows, Index columns) {
  return RowMajorMatrix<Scalar>::NullaryExpr(rows, columns,
                                             [&](Index, Index) { return static_cast<Scalar>(random.normal()); });
}

template RowMajorMatrix<float> random_normal(Random&, Index, Index);
template RowMajorMatrix<double> random_normal(Random&, Index, Index);

}  // namespace dyad
