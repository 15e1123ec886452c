#include "model/low_rank.h"

#include <algorithm>
#include <numeric>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

namespace dyad {
namespace {

/// C S C' = Q core Q' with Q from the thin QR of C.
template <typename Scalar>
struct Compressed {
  Eigen::HouseholderQR<Small<Scalar>> qr;
  Index width;
  Eigen::SelfAdjointEigenSolver<Small<Scalar>> eigen;

  Compressed(const Small<Scalar>& C, const Small<Scalar>& S) : qr(C), width(std::min(C.rows(), C.cols())) {
    const Small<Scalar> R = qr.matrixQR().topRows(width).template triangularView<Eigen::Upper>();
    const Small<Scalar> core = R * S * R.transpose();
    eigen.compute((core + core.transpose()) / 2);
  }
};

}  // namespace

template <typename Scalar>
EigenForm<Scalar> best_rank_k(const Small<Scalar>& C, const Small<Scalar>& S, Index k, Keep keep) {
  const Compressed<Scalar> compressed(C, S);
  const Vector<Scalar>& values = compressed.eigen.eigenvalues();
  const auto strength = [&](Index i) { return keep == Keep::positive ? values[i] : std::abs(values[i]); };
  std::vector<Index> order(static_cast<std::size_t>(compressed.width));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return strength(i) > strength(j); });

  EigenForm<Scalar> kept{Tall<Scalar>(C.rows(), k), Vector<Scalar>(k)};
  Small<Scalar> directions = Small<Scalar>::Zero(C.rows(), k);
  for (Index c = 0; c < k; ++c) {
    const Index i = order[static_cast<std::size_t>(c)];
    directions.col(c).head(compressed.width) = compressed.eigen.eigenvectors().col(i);
    kept.values[c] = keep == Keep::positive ? std::max(values[i], Scalar(0)) : values[i];
  }
  directions.applyOnTheLeft(compressed.qr.householderQ());
  kept.vectors = directions;
  return kept;
}

template <typename Scalar>
Scalar spectral_norm(const Small<Scalar>& C, const Small<Scalar>& S) {
  if (C.cols() == 0) return 0;
  return Compressed<Scalar>(C, S).eigen.eigenvalues().cwiseAbs().maxCoeff();
}

template <typename Scalar>
void set_interactions(Model<Scalar>& model, const EigenForm<Scalar>& M) {
  model.factors.assign(M.vectors.data(), M.vectors.data() + M.vectors.size());
  model.spectrum.assign(M.values.data(), M.values.data() + M.values.size());
}

template EigenForm<float> best_rank_k(const Small<float>&, const Small<float>&, Index, Keep);
template EigenForm<double> best_rank_k(const Small<double>&, const Small<double>&, Index, Keep);
template float spectral_norm(const Small<float>&, const Small<float>&);
template double spectral_norm(const Small<double>&, const Small<double>&);
template void set_interactions(Model<float>&, const EigenForm<float>&);
template void set_interactions(Model<double>&, const EigenForm<double>&);

}  // namespace dyad
