#include "solvers/gauss_newton/in_memory_equations.h"

#include <algorithm>
#include <utility>

#include "model/forward_pass.h"

namespace dyad {
namespace {

/// Returns [w, A].
RowMajorMatrix<double> stack_features(const SignedFactors<double>& parameters) {
  RowMajorMatrix<double> features(parameters.dim(), parameters.rank() + 1);
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

Matrix<double> InMemoryNormalEquations::gram(bool squares) const {
  const Index size = 1 + (squares ? 2 : 1) * dim();
  std::vector<Matrix<double>> sums(static_cast<std::size_t>(pool_.count()));
  for_each_row_range(rows_.X(), pool_, [&](int worker, IndexRange share) {
    Matrix<double>& sum = sums[static_cast<std::size_t>(worker)];
    sum.setZero(size, size);
    rows_.X().add_gram(share, rows_.weights().data() + share.first, sum);
  });
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].size() > 0) sums.front() += sums[worker];
  return std::move(sums.front());
}

Vector<double> InMemoryNormalEquations::gram_diagonal(bool squares) const {
  Vector<double> sum = Vector<double>::Zero(1 + (squares ? 2 : 1) * dim());
  rows_.X().add_gram_diagonal(all_rows(), rows_.weights().data(), sum);
  return sum;
}

RowSums InMemoryNormalEquations::sum_over_blocks(const AddBlock& add_block) const {
  RowSums total;
  worker_sums_.resize(static_cast<std::size_t>(pool_.count()));
  const auto add_share = [&](int worker, IndexRange share) {
    RowSums& sums = worker == 0 ? total : worker_sums_[static_cast<std::size_t>(worker)];
    sums.set_zero(dim(), width(), has_squares());
    const Index block_rows = rows_.X().can_split() ? rows_.X().block_rows() : rows_.count();
    for (Index done = 0; done < share.count; done += block_rows)
      add_block({share.first + done, std::min(block_rows, share.count - done)}, sums);
  };
  // Number of multiplications below which a pass runs on one thread, because starting the other threads takes longer.
  // Sensitivity: docs/constants.md.
  constexpr double min_parallel_work = 1e5;
  if (!rows_.X().can_split() || rows_.X().entries() * static_cast<double>(width()) < min_parallel_work) {
    add_share(0, all_rows());
    return total;
  }
  pool_.split(rows_.count(), add_share);
  for (std::size_t worker = 1; worker < worker_sums_.size(); ++worker) total.add(worker_sums_[worker]);
  return total;
}

double InMemoryNormalEquations::expand_loss(Index i, double prediction, double& loss, double& curvature) const {
  const double weight = rows_.weights()[i];
  curvature = weight;
  if (!(weight > 0)) return 0;
  // Keeps the Gauss-Newton matrix positive definite if the likelihood saturates: p (1 - p) of classes is smaller for
  // |f| > 14, because p (1 - p) is about exp(-|f|) and log(1e6) = 13.8. Sensitivity: docs/constants.md.
  constexpr double min_curvature = 1e-6;
  const Likelihood::Expansion expansion = options_.likelihood->expand(rows_.targets()[i], prediction);
  loss += weight * expansion.loss;
  curvature = expansion.curvature > 0 ? weight * std::max(expansion.curvature, min_curvature) : 0;
  return weight * expansion.gradient;
}

InMemoryNormalEquations::Projections InMemoryNormalEquations::project_sides(IndexRange block,
                                                                            const RowMajorMatrix<double>& B) const {
  Projections projections;
  projections.left.resize(block.count, B.cols());
  rows_.X().multiply(block, sides_.left_columns(), B.data(), B.cols(), projections.left.data());
  if (!sides_.is_bilinear()) return projections;
  projections.right.resize(block.count, B.cols());
  rows_.X().multiply(block, sides_.right_columns(), B.data() + sides_.right_first() * B.cols(), B.cols(),
                     projections.right.data());
  return projections;
}

Vector<double> InMemoryNormalEquations::predictions(IndexRange block, const SignedFactors<double>& parameters,
                                                    const Vector<double>& squares,
                                                    const Projections& projections) const {
  Vector<double> f = Vector<double>::Zero(block.count);
  if (has_squares()) rows_.X().multiply_squares(block, squares.data(), f.data());
  const ForwardPass<double> forward(parameters, squares);
  for (Index i = 0; i < block.count; ++i) {
    const double* left = projections.left.data() + i * projections.left.cols();
    const double* right = projections.other().data() + i * projections.left.cols();
    f[i] = forward.combine(left + 1, right + 1, sides_.is_bilinear() ? left[0] + right[0] : left[0], f[i]);
  }
  return f;
}

void InMemoryNormalEquations::add_transposed_jacobian(IndexRange block, const SignedFactors<double>& parameters,
                                                      const Vector<double>& e, const Projections& projections,
                                                      RowSums& sums) const {
  const Index k = options_.shape.rank;
  const double symmetry_factor = sides_.is_bilinear() ? 1 : 2;
  // df/dw_j = x_j and df/dA_jc = symmetry_factor signs_c (A'z)_c x_j, where z is the other side of the row, and z = x
  // in symmetric models.
  RowMajorMatrix<double> coefficients(block.count, width());
  const auto add_side = [&](IndexRange columns, const RowMajorMatrix<double>& other) {
    coefficients.col(0) = e;
    for (Index i = 0; i < block.count; ++i)
      coefficients.row(i).tail(k) =
          (symmetry_factor * e[i]) * other.row(i).segment(1, k).cwiseProduct(parameters.signs.transpose());
    rows_.X().add_transposed_product(block, columns, coefficients.data(), width(),
                                     sums.features.data() + columns.first * width());
  };
  add_side(sides_.left_columns(), projections.other());
  if (sides_.is_bilinear()) add_side(sides_.right_columns(), projections.left);
  if (has_squares()) rows_.X().add_transposed_squares(block, e.data(), sums.squares.data());
  sums.intercept += e.sum();
}

RowSums InMemoryNormalEquations::gradient(const SignedFactors<double>& parameters) const {
  const Index k = options_.shape.rank;
  const RowMajorMatrix<double> features = stack_features(parameters);
  const Vector<double> squares = parameters.square_coefficients();
  return sum_over_blocks([&](IndexRange block, RowSums& sums) {
    const Projections projections = project_sides(block, features);
    Vector<double> r = predictions(block, parameters, squares, projections);
    Vector<double> h(block.count);
    for (Index i = 0; i < block.count; ++i) r[i] = expand_loss(block.first + i, r[i], sums.loss, h[i]);
    sums.curvature += h.sum();
    const auto add_gram = [&](const RowMajorMatrix<double>& side, Matrix<double>& gram_of_side) {
      gram_of_side += side.rightCols(k).transpose() * h.asDiagonal() * side.rightCols(k);
    };
    add_gram(projections.left, sums.projection_grams[0]);
    if (sides_.is_bilinear()) add_gram(projections.right, sums.projection_grams[1]);
    add_transposed_jacobian(block, parameters, r, projections, sums);
  });
}

RowSums InMemoryNormalEquations::curvature_product(const SignedFactors<double>& parameters,
                                                   const ParameterVector& t) const {
  const Index k = options_.shape.rank;
  RowMajorMatrix<double> features_and_step(dim(), 2 * width());
  features_and_step << stack_features(parameters), t.features;
  const Vector<double> squares = parameters.square_coefficients();
  Vector<double> square_coefficient_step;
  if (has_squares()) {
    // Derivative along t of the coefficient squares_j - (A diag(signs) A')_jj of x_j^2.
    square_coefficient_step = -2 * (parameters.A.cwiseProduct(t.features.rightCols(k)) * parameters.signs);
    if (options_.shape.diagonal == Diagonal::free) square_coefficient_step += t.squares;
  }
  return sum_over_blocks([&](IndexRange block, RowSums& sums) {
    const Projections projections = project_sides(block, features_and_step);
    const auto& [left, right] = projections;
    Vector<double> Jt = left.col(width()).array() + t.intercept;
    const auto factor_columns = [&](const RowMajorMatrix<double>& side) { return side.middleCols(1, k); };
    const auto step_columns = [&](const RowMajorMatrix<double>& side) { return side.rightCols(k); };
    if (sides_.is_bilinear()) {
      Jt += right.col(width());
      Jt += (step_columns(left).cwiseProduct(factor_columns(right)) +
             factor_columns(left).cwiseProduct(step_columns(right))) *
            parameters.signs;
    } else {
      Jt += 2 * (step_columns(left).cwiseProduct(factor_columns(left)) * parameters.signs);
    }
    if (has_squares()) {
      Vector<double> square_terms(block.count);
      rows_.X().multiply_squares(block, square_coefficient_step.data(), square_terms.data());
      Jt += square_terms;
    }
    if (options_.likelihood->has_unit_curvature()) {
      Jt.array() *= rows_.weights().segment(block.first, block.count).array();
    } else {
      const Vector<double> f = predictions(block, parameters, squares, projections);
      for (Index i = 0; i < block.count; ++i) {
        double curvature = 0;
        (void)expand_loss(block.first + i, f[i], sums.loss, curvature);
        Jt[i] *= curvature;
      }
    }
    add_transposed_jacobian(block, parameters, Jt, projections, sums);
  });
}

}  // namespace dyad
