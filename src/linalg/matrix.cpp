#include "linalg/matrix.h"

namespace dyad {

template <typename Scalar>
Tall<Scalar> random_normal(Random& random, Index rows, Index columns) {
  return Tall<Scalar>::NullaryExpr(rows, columns, [&](Index, Index) { return static_cast<Scalar>(random.normal()); });
}

template Tall<float> random_normal(Random&, Index, Index);
template Tall<double> random_normal(Random&, Index, Index);

}  // namespace dyad
