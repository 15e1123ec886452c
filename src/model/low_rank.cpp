#include "model/low_rank.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// Eigendecomposition of R S R', which has the eigenvalues of C S C' for C = QR.
SymmetricEigen<double> decompose_core(const ThinQr<double>& qr, const Matrix<double>& S) {
  return symmetric_eigen<double>(qr.R() * S * qr.R().transpose());
}

LowRankFactorization<double> truncate_symmetric(Matrix<double> C, const Matrix<double>& S, Index k,
                                                EigenvalueSelection selection) {
  const ThinQr<double> qr(std::move(C));
  const SymmetricEigen<double> eigen = decompose_core(qr, S);
  const Vector<double>& values = eigen.values;
  const auto sort_key = [&](Index i) {
    return selection == EigenvalueSelection::positive ? values[i] : std::abs(values[i]);
  };
  std::vector<Index> order(static_cast<std::size_t>(values.size()));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return sort_key(i) > sort_key(j); });

  Matrix<double> directions(values.size(), k);
  LowRankFactorization<double> result{{}, Vector<double>(k)};
  for (Index c = 0; c < k; ++c) {
    const Index i = order[static_cast<std::size_t>(c)];
    directions.col(c) = eigen.vectors.col(i);
    result.values[c] = selection == EigenvalueSelection::positive ? std::max(values[i], 0.0) : values[i];
  }
  result.vectors = qr.apply_Q(directions);
  return result;
}

LowRankFactorization<double> truncate_bilinear(const Sides& sides, const Matrix<double>& C, const Matrix<double>& S,
                                               Index k) {
  const ThinQr<double> left(sides.left(C));
  const ThinQr<double> right(sides.right(C));
  const Svd<double> svd = compute_svd<double>(left.R() * S * right.R().transpose());
  LowRankFactorization<double> result{RowMajorMatrix<double>(C.rows(), k), svd.values.head(k)};
  result.vectors << left.apply_Q(svd.left.leftCols(k)), right.apply_Q(svd.right.leftCols(k));
  return result;
}

}  // namespace

template <typename Scalar>
LowRankFactorization<Scalar> truncate_to_rank(const Sides& sides, Matrix<Scalar> C, const Matrix<Scalar>& S, Index k,
                                              EigenvalueSelection selection) {
  if constexpr (std::is_same_v<Scalar, double>) {
    return sides.is_bilinear() ? truncate_bilinear(sides, C, S, k) : truncate_symmetric(std::move(C), S, k, selection);
  } else {
    const LowRankFactorization<double> best =
        truncate_to_rank<double>(sides, C.template cast<double>(), S.template cast<double>(), k, selection);
    return {best.vectors.cast<Scalar>(), best.values.cast<Scalar>()};
  }
}

double spectral_norm(const Sides& sides, const Matrix<double>& C, const Matrix<double>& S) {
  if (C.cols() == 0) return 0;
  if (sides.is_bilinear()) return truncate_bilinear(sides, C, S, 1).values[0];
  return decompose_core(ThinQr<double>(C), S).values.cwiseAbs().maxCoeff();
}

template <typename Scalar>
void set_interactions(Model<Scalar>& model, const LowRankFactorization<Scalar>& M) {
  model.factors.assign(M.vectors.data(), M.vectors.data() + M.vectors.size());
  model.spectrum.assign(M.values.data(), M.values.data() + M.values.size());
}

template <typename Scalar>
Vector<Scalar> diagonal_of_interactions(const Model<Scalar>& model) {
  return as_row_major(model.factors, model.dim(), model.rank()).cwiseAbs2() * as_vector(model.spectrum);
}

template <typename Scalar>
Vector<Scalar> interaction_gradient(const Model<Scalar>& model, const Vector<Scalar>& x) {
  const Sides sides(model);
  const auto U = as_row_major(model.factors, model.dim(), model.rank());
  const auto lambda = as_vector(model.spectrum);
  Vector<Scalar> product(model.dim());
  // left_factors diag(lambda) right_factors' vector
  const auto multiply = [&](const auto& left_factors, const auto& right_factors, const auto& vector) -> Vector<Scalar> {
    const Vector<Scalar> projection = right_factors.transpose() * vector;
    return left_factors * lambda.cwiseProduct(projection);
  };
  if (sides.is_bilinear())
    product << multiply(sides.left(U), sides.right(U), sides.right(x)),
        multiply(sides.right(U), sides.left(U), sides.left(x));
  else
    product = multiply(U, U, x);
  if (!model.squares.empty()) product += as_vector(model.squares).cwiseProduct(x);
  return sides.is_bilinear() ? product : 2 * product;
}

void clear_features(Model<double>& model, const std::vector<bool>& cleared) {
  const Index rank = model.rank();
  Matrix<double> factors = as_row_major(model.factors, model.dim(), rank);
  // Coefficients of x_j^2, M_jj + squares_j, which must not depend on the new factorization.
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
    const Matrix<double> core = as_vector(model.spectrum).asDiagonal();
    set_interactions(model, truncate_to_rank<double>(Sides(model), factors, core, rank, EigenvalueSelection::largest));
  }
  if (squares.size() > 0) as_vector(model.squares) = squares - diagonal_of_interactions(model);
}

template LowRankFactorization<float> truncate_to_rank(const Sides&, Matrix<float>, const Matrix<float>&, Index,
                                                      EigenvalueSelection);
template LowRankFactorization<double> truncate_to_rank(const Sides&, Matrix<double>, const Matrix<double>&, Index,
                                                       EigenvalueSelection);
template void set_interactions(Model<float>&, const LowRankFactorization<float>&);
template void set_interactions(Model<double>&, const LowRankFactorization<double>&);
template Vector<float> diagonal_of_interactions(const Model<float>&);
template Vector<double> diagonal_of_interactions(const Model<double>&);
template Vector<float> interaction_gradient(const Model<float>&, const Vector<float>&);
template Vector<double> interaction_gradient(const Model<double>&, const Vector<double>&);

}  // namespace dyad
