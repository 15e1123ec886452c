#include "solvers/gauss_newton/in_memory_equations.h"

#include <algorithm>
#include <utility>

#include "model/forward_pass.h"

namespace dyad {
namespace {

/// [w, A].
Tall<double> features_of(const SignedFactors<double>& parameters) {
  Tall<double> features(parameters.dim(), parameters.rank() + 1);
  features << parameters.weights, parameters.A;
  return features;
}

}  // namespace

InMemoryNormalEquations::InMemoryNormalEquations(const ObservedRows& rows, const NewtonOptions& options,
                                                 ThreadPool& pool)
    : rows_(rows), options_(options), pool_(pool), sides_(rows.dim(), options.shape.left_dim) {}

TargetSums InMemoryNormalEquations::targets() const {
  TargetSums sums;
  for (Index i = 0; i < rows_.count(); ++i) {
    const double weight = rows_.weights()[i];
    const double target = options_.likelihood->observed(rows_.targets()[i]);
    sums.add({weight, weight * target, weight * target * target});
  }
  return sums;
}

Small<double> InMemoryNormalEquations::products(bool squares) const {
  const Index size = 1 + (squares ? 2 : 1) * dim();
  std::vector<Small<double>> sums(static_cast<std::size_t>(pool_.count()));
  for_each_share(rows_.X(), pool_, [&](int worker, Share share) {
    Small<double>& sum = sums[static_cast<std::size_t>(worker)];
    sum.setZero(size, size);
    rows_.X().add_gram(share, rows_.weights().data() + share.first, sum);
  });
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].size() > 0) sums.front() += sums[worker];
  return std::move(sums.front());
}

Vector<double> InMemoryNormalEquations::product_diagonal(bool squares) const {
  Vector<double> sum = Vector<double>::Zero(1 + (squares ? 2 : 1) * dim());
  rows_.X().add_gram_diagonal(all_rows(), rows_.weights().data(), sum);
  return sum;
}

RowSums InMemoryNormalEquations::sum_over_blocks(const Visit& visit) const {
  RowSums first;
  sums_of_others_.resize(static_cast<std::size_t>(pool_.count()));
  const auto visit_share = [&](int worker, Share share) {
    RowSums& own = worker == 0 ? first : sums_of_others_[static_cast<std::size_t>(worker)];
    own.set_zero(dim(), width(), has_squares());
    const Index most = rows_.X().can_split() ? rows_.X().block_rows() : rows_.count();
    for (Index done = 0; done < share.count; done += most)
      visit({share.first + done, std::min(most, share.count - done)}, own);
  };
  constexpr double min_work_of_threads = 1e5;  // multiplications; below, starting the other threads costs more
  if (!rows_.X().can_split() || rows_.X().entries() * static_cast<double>(width()) < min_work_of_threads) {
    visit_share(0, all_rows());
    return first;
  }
  pool_.split(rows_.count(), visit_share);
  for (std::size_t worker = 1; worker < sums_of_others_.size(); ++worker) first.add(sums_of_others_[worker]);
  return first;
}

double InMemoryNormalEquations::expand_loss(Index i, double prediction, double& loss, double& curvature) const {
  const double weight = rows_.weights()[i];
  curvature = weight;
  if (!(weight > 0)) return 0;
  // Keeps the Gauss-Newton matrix positive definite where the likelihood saturates, as for classes beyond |f| = 14.
  constexpr double min_curvature = 1e-6;
  const Likelihood::Expansion at = options_.likelihood->expand(rows_.targets()[i], prediction);
  loss += weight * at.loss;
  curvature = at.curvature > 0 ? weight * std::max(at.curvature, min_curvature) : 0;
  return weight * at.gradient;
}

InMemoryNormalEquations::Projections InMemoryNormalEquations::project_sides(Share block, const Tall<double>& B) const {
  Projections projections;
  projections.left.resize(block.count, B.cols());
  rows_.X().multiply(block, sides_.left_columns(), B.data(), B.cols(), projections.left.data());
  if (!sides_.two()) return projections;
  projections.right.resize(block.count, B.cols());
  rows_.X().multiply(block, sides_.right_columns(), B.data() + sides_.right_first() * B.cols(), B.cols(),
                     projections.right.data());
  return projections;
}

Vector<double> InMemoryNormalEquations::predictions(Share block, const SignedFactors<double>& at,
                                                    const Vector<double>& squares,
                                                    const Projections& projections) const {
  Vector<double> f = Vector<double>::Zero(block.count);
  if (has_squares()) rows_.X().multiply_squares(block, squares.data(), f.data());
  const ForwardPass<double> forward(at, squares);
  for (Index i = 0; i < block.count; ++i) {
    const double* left = projections.left.data() + i * projections.left.cols();
    const double* right = projections.other().data() + i * projections.left.cols();
    f[i] = forward.combine(left + 1, right + 1, sides_.two() ? left[0] + right[0] : left[0], f[i]);
  }
  return f;
}

void InMemoryNormalEquations::add_transposed_jacobian(Share block, const SignedFactors<double>& at,
                                                      const Vector<double>& e, const Projections& projections,
                                                      RowSums& sums) const {
  const Index k = options_.shape.rank;
  const double twice = sides_.two() ? 1 : 2;
  Tall<double> coefficients(block.count, width());
  const auto add_side = [&](Share columns, const Tall<double>& other) {
    coefficients.col(0) = e;
    for (Index i = 0; i < block.count; ++i)
      coefficients.row(i).tail(k) = (twice * e[i]) * other.row(i).segment(1, k).cwiseProduct(at.signs.transpose());
    rows_.X().add_transposed_product(block, columns, coefficients.data(), width(),
                                     sums.features.data() + columns.first * width());
  };
  add_side(sides_.left_columns(), projections.other());
  if (sides_.two()) add_side(sides_.right_columns(), projections.left);
  if (has_squares()) rows_.X().add_transposed_squares(block, e.data(), sums.squares.data());
  sums.intercept += e.sum();
}

RowSums InMemoryNormalEquations::gradient(const SignedFactors<double>& at) const {
  const Index k = options_.shape.rank;
  const Tall<double> features = features_of(at);
  const Vector<double> squares = at.square_coefficients();
  return sum_over_blocks([&](Share block, RowSums& own) {
    const Projections projections = project_sides(block, features);
    Vector<double> r = predictions(block, at, squares, projections);
    Vector<double> h(block.count);
    for (Index i = 0; i < block.count; ++i) r[i] = expand_loss(block.first + i, r[i], own.loss, h[i]);
    own.curvature += h.sum();
    const auto add_products = [&](const Tall<double>& side, Small<double>& products) {
      products += side.rightCols(k).transpose() * h.asDiagonal() * side.rightCols(k);
    };
    add_products(projections.left, own.products_of_sides[0]);
    if (sides_.two()) add_products(projections.right, own.products_of_sides[1]);
    add_transposed_jacobian(block, at, r, projections, own);
  });
}

RowSums InMemoryNormalEquations::curvature_product(const SignedFactors<double>& at, const ParameterVector& t) const {
  const Index k = options_.shape.rank;
  Tall<double> both(dim(), 2 * width());
  both << features_of(at), t.features;
  const Vector<double> squares = at.square_coefficients();
  Vector<double> squares_along;
  if (has_squares()) {
    squares_along = -2 * (at.A.cwiseProduct(t.features.rightCols(k)) * at.signs);
    if (options_.shape.diagonal == Diagonal::free) squares_along += t.squares;
  }
  return sum_over_blocks([&](Share block, RowSums& own) {
    const Projections projections = project_sides(block, both);
    const auto& [left, right] = projections;
    Vector<double> Jt = left.col(width()).array() + t.intercept;
    const auto here = [&](const Tall<double>& side) { return side.middleCols(1, k); };
    const auto along = [&](const Tall<double>& side) { return side.rightCols(k); };
    if (sides_.two()) {
      Jt += right.col(width());
      Jt += (along(left).cwiseProduct(here(right)) + here(left).cwiseProduct(along(right))) * at.signs;
    } else {
      Jt += 2 * (along(left).cwiseProduct(here(left)) * at.signs);
    }
    if (has_squares()) {
      Vector<double> square(block.count);
      rows_.X().multiply_squares(block, squares_along.data(), square.data());
      Jt += square;
    }
    if (options_.likelihood->has_unit_curvature()) {
      Jt.array() *= rows_.weights().segment(block.first, block.count).array();
    } else {
      const Vector<double> f = predictions(block, at, squares, projections);
      for (Index i = 0; i < block.count; ++i) {
        double curvature = 0;
        (void)expand_loss(block.first + i, f[i], own.loss, curvature);
        Jt[i] *= curvature;
      }
    }
    add_transposed_jacobian(block, at, Jt, projections, own);
  });
}

}  // namespace dyad
