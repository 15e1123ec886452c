#include "model/low_rank.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

SymmetricEigen<double> eigen_of(const ThinQr<double>& qr, const Small<double>& S) {
  return symmetric_eigen<double>(qr.R() * S * qr.R().transpose());
}

Factored<double> best_symmetric(const Small<double>& C, const Small<double>& S, Index k, Keep keep) {
  const ThinQr<double> qr(C);
  const SymmetricEigen<double> eigen = eigen_of(qr, S);
  const Vector<double>& values = eigen.values;
  const auto strength = [&](Index i) { return keep == Keep::positive ? values[i] : std::abs(values[i]); };
  std::vector<Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return strength(i) > strength(j); });

  Small<double> directions(values.size(), k);
  Factored<double> kept{{}, Vector<double>(k)};
  for (Index c = 0; c < k; ++c) {
    const Index i = order[static_cast<std::size_t>(c)];
    directions.col(c) = eigen.vectors.col(i);
    kept.values[c] = keep == Keep::positive ? std::max(values[i], 0.0) : values[i];
  }
  kept.vectors = qr.Q_times(directions);
  return kept;
}

Factored<double> best_bilinear(const Sides& sides, const Small<double>& C, const Small<double>& S, Index k) {
  const ThinQr<double> left(sides.left(C));
  const ThinQr<double> right(sides.right(C));
  const SingularValues<double> svd = singular_values<double>(left.R() * S * right.R().transpose());
  Factored<double> kept{Tall<double>(C.rows(), k), svd.values.head(k)};
  kept.vectors << left.Q_times(svd.left.leftCols(k)), right.Q_times(svd.right.leftCols(k));
  return kept;
}

}  // namespace

template <typename Scalar>
Factored<Scalar> best_rank_k(const Sides& sides, const Small<Scalar>& C, const Small<Scalar>& S, Index k, Keep keep) {
  if constexpr (std::is_same_v<Scalar, double>) {
    return sides.two() ? best_bilinear(sides, C, S, k) : best_symmetric(C, S, k, keep);
  } else {
    const Factored<double> best =
        best_rank_k<double>(sides, C.template cast<double>(), S.template cast<double>(), k, keep);
    return {best.vectors.cast<Scalar>(), best.values.cast<Scalar>()};
  }
}

double spectral_norm(const Sides& sides, const Small<double>& C, const Small<double>& S) {
  if (C.cols() == 0) return 0;
  if (sides.two()) return best_bilinear(sides, C, S, 1).values[0];
  return eigen_of(ThinQr<double>(C), S).values.cwiseAbs().maxCoeff();
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
  const auto U = as_tall(model.factors, model.dim(), model.rank());
  const auto lambda = as_vector(model.spectrum);
  Vector<Scalar> product(model.dim());
  const auto multiply = [&](const auto& to, const auto& from, const auto& of) -> Vector<Scalar> {
    const Vector<Scalar> projection = from.transpose() * of;
    return to * lambda.cwiseProduct(projection);
  };
  if (sides.two())
    product << multiply(sides.left(U), sides.right(U), sides.right(x)),
        multiply(sides.right(U), sides.left(U), sides.left(x));
  else
    product = multiply(U, U, x);
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
template void set_interactions(Model<float>&, const Factored<float>&);
template void set_interactions(Model<double>&, const Factored<double>&);
template Vector<float> diagonal_of_interactions(const Model<float>&);
template Vector<double> diagonal_of_interactions(const Model<double>&);
template Vector<float> interaction_slope(const Model<float>&, const Vector<float>&);
template Vector<double> interaction_slope(const Model<double>&, const Vector<double>&);

}  // namespace dyad
