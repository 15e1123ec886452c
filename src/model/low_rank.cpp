#include "model/low_rank.h"

#include <algorithm>
#include <numeric>

#include <Eigen/QR>

#include "base/decompositions.h"

namespace dyad {
namespace {

/// A = QR with Q of min(rows, columns) columns.
template <typename Scalar>
class ThinQr {
 public:
  explicit ThinQr(const Small<Scalar>& A) : qr_(A), width_(std::min(A.rows(), A.cols())) {}

  [[nodiscard]] Small<Scalar> R() const {
    return qr_.matrixQR().topRows(width_).template triangularView<Eigen::Upper>();
  }
  [[nodiscard]] Small<Scalar> Q_times(const Small<Scalar>& B) const {
    Small<Scalar> product = Small<Scalar>::Zero(qr_.rows(), B.cols());
    product.topRows(width_) = B;
    product.applyOnTheLeft(qr_.householderQ());
    return product;
  }

 private:
  Eigen::HouseholderQR<Small<Scalar>> qr_;
  Index width_;
};

template <typename Scalar>
SymmetricEigen<Scalar> eigen_of(const ThinQr<Scalar>& qr, const Small<Scalar>& S) {
  return symmetric_eigen<Scalar>(qr.R() * S * qr.R().transpose());
}

template <typename Scalar>
Factored<Scalar> best_symmetric(const Small<Scalar>& C, const Small<Scalar>& S, Index k, Keep keep) {
  const ThinQr<Scalar> qr(C);
  const SymmetricEigen<Scalar> eigen = eigen_of(qr, S);
  const Vector<Scalar>& values = eigen.values;
  const auto strength = [&](Index i) { return keep == Keep::positive ? values[i] : std::abs(values[i]); };
  std::vector<Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return strength(i) > strength(j); });

  Small<Scalar> directions(values.size(), k);
  Factored<Scalar> kept{{}, Vector<Scalar>(k)};
  for (Index c = 0; c < k; ++c) {
    const Index i = order[static_cast<std::size_t>(c)];
    directions.col(c) = eigen.vectors.col(i);
    kept.values[c] = keep == Keep::positive ? std::max(values[i], Scalar(0)) : values[i];
  }
  kept.vectors = qr.Q_times(directions);
  return kept;
}

template <typename Scalar>
Factored<Scalar> best_bilinear(const Sides& sides, const Small<Scalar>& C, const Small<Scalar>& S, Index k) {
  const ThinQr<Scalar> left(sides.left(C));
  const ThinQr<Scalar> right(sides.right(C));
  const SingularValues<Scalar> svd = singular_values<Scalar>(left.R() * S * right.R().transpose());
  Factored<Scalar> kept{Tall<Scalar>(C.rows(), k), svd.values.head(k)};
  kept.vectors << left.Q_times(svd.left.leftCols(k)), right.Q_times(svd.right.leftCols(k));
  return kept;
}

}  // namespace

template <typename Scalar>
Factored<Scalar> best_rank_k(const Sides& sides, const Small<Scalar>& C, const Small<Scalar>& S, Index k, Keep keep) {
  return sides.two() ? best_bilinear(sides, C, S, k) : best_symmetric(C, S, k, keep);
}

template <typename Scalar>
Scalar spectral_norm(const Sides& sides, const Small<Scalar>& C, const Small<Scalar>& S) {
  if (C.cols() == 0) return 0;
  if (sides.two()) return best_bilinear(sides, C, S, 1).values[0];
  return eigen_of(ThinQr<Scalar>(C), S).values.cwiseAbs().maxCoeff();
}

template <typename Scalar>
void set_interactions(Model<Scalar>& model, const Factored<Scalar>& M) {
  model.factors.assign(M.vectors.data(), M.vectors.data() + M.vectors.size());
  model.spectrum.assign(M.values.data(), M.values.data() + M.values.size());
}

template <typename Scalar>
Vector<Scalar> diagonal_of_interactions(const Model<Scalar>& model) {
  return as_tall(model.factors, model.dim(), model.rank()).cwiseAbs2() * as_vector(model.spectrum);
}

template <typename Scalar>
Vector<Scalar> interaction_slope(const Model<Scalar>& model, const Vector<Scalar>& x) {
  const Sides sides(model);
  Vector<Scalar> product = sides.template interactions_times<Scalar>(model, x);
  if (!model.squares.empty()) product += as_vector(model.squares).cwiseProduct(x);
  return sides.two() ? product : 2 * product;
}

void clear_features(Model<double>& model, const std::vector<bool>& cleared) {
  const Index rank = model.rank();
  Small<double> factors = as_tall(model.factors, model.dim(), rank);
  Vector<double> squares = model.squares.empty() ? Vector<double>() : diagonal_of_interactions(model);
  if (squares.size() > 0) squares += as_vector(model.squares);
  bool has_changed = false;
  for (Index j = 0; j < model.dim(); ++j) {
    if (!cleared[static_cast<std::size_t>(j)]) continue;
    has_changed = has_changed || !factors.row(j).isZero(0);
    factors.row(j).setZero();
    model.weights[static_cast<std::size_t>(j)] = 0;
    if (squares.size() > 0) squares[j] = 0;
  }
  if (has_changed) {
    const Small<double> core = as_vector(model.spectrum).asDiagonal();
    set_interactions(model, best_rank_k<double>(Sides(model), factors, core, rank, Keep::largest));
  }
  if (squares.size() > 0) as_vector(model.squares) = squares - diagonal_of_interactions(model);
}

template Factored<float> best_rank_k(const Sides&, const Small<float>&, const Small<float>&, Index, Keep);
template Factored<double> best_rank_k(const Sides&, const Small<double>&, const Small<double>&, Index, Keep);
template float spectral_norm(const Sides&, const Small<float>&, const Small<float>&);
template double spectral_norm(const Sides&, const Small<double>&, const Small<double>&);
template void set_interactions(Model<float>&, const Factored<float>&);
template void set_interactions(Model<double>&, const Factored<double>&);
template Vector<float> diagonal_of_interactions(const Model<float>&);
template Vector<double> diagonal_of_interactions(const Model<double>&);
template Vector<float> interaction_slope(const Model<float>&, const Vector<float>&);
template Vector<double> interaction_slope(const Model<double>&, const Vector<double>&);

}  // namespace dyad
