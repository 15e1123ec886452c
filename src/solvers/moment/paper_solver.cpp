#include <algorithm>
#include <utility>

#include <dyad/moment.h>

#include "base/thread_pool.h"
#include "model/low_rank.h"
#include "solvers/moment/change_estimator.h"
#include "solvers/moment/moment_sums.h"
#include "solvers/moment/step.h"

namespace dyad {
namespace {

/// Iterate of Algorithm 1: M = (UV' + VU')/2, of rank up to 2k before convergence; bilinear: M = UV'.
struct PaperIterate {
  RowMajorMatrix<double> probe;  ///< probe of the next batch: U; bilinear: [U; orthonormal basis of V]
  Model<double> full;            ///< with the full M; its residuals enter the next sums
  Model<double> leading;         ///< with the best rank-k approximation of M; exported as the result

  [[nodiscard]] bool is_finite() const { return full.is_finite() && leading.is_finite() && probe.allFinite(); }
};

}  // namespace

template <typename Scalar>
struct PaperSolver<Scalar>::State {
  MomentOptions options;
  Sides sides;
  ThreadPool pool;
  ChangeEstimator estimator;
  PaperIterate iterate;
  Model<Scalar> full;     ///< iterate.full in the precision of the solver
  Model<Scalar> leading;  ///< iterate.leading in the precision of the solver
  bool has_started = false;

  explicit State(const MomentOptions& moment_options)
      : options(moment_options),
        sides(moment_options.shape.dim, moment_options.shape.left_dim),
        pool(moment_options.threads),
        estimator(moment_options),
        iterate(zero_iterate(random_start<double>(moment_options, moment_options.shape.rank))),
        full(model_cast<Scalar>(iterate.full)),
        leading(full) {}

  BatchReport update(const Batch<Scalar>& batch) {
    const BatchReport report = has_started ? advance(batch) : initialize(batch);
    has_started = has_started || report.is_accepted;
    full = model_cast<Scalar>(iterate.full);
    leading = model_cast<Scalar>(iterate.leading);
    return report;
  }

  /// Iterate of the model `start`, which has M = 0 and w = 0. The probe is the factors of `start`.
  [[nodiscard]] PaperIterate zero_iterate(const Model<double>& start) const {
    return {as_row_major(start.factors, start.dim(), start.rank()), start, start};
  }

  /// Sums over the batch with the residuals of `model`. Writes the feature moments if `features` is not null.
  MomentSums<double> accumulate_sums(const Batch<Scalar>& batch, const Model<double>& model,
                                     const RowMajorMatrix<double>& probe, FeatureMoments* features) {
    OptionalSums collect = estimator.required_sums();
    collect.features = collect.features && features != nullptr;
    const Model<Scalar> row_model = model_cast<Scalar>(model);
    RowMajorMatrix<Scalar> row_probe(probe.rows(), probe.cols());
    row_probe = probe.template cast<Scalar>();
    MomentAccumulator<Scalar> accumulator(pool, row_model, row_probe, collect);
    batch([&](const Rows<Scalar>& rows) { accumulator.add(rows); });
    if (collect.features) *features = accumulator.features();
    return accumulator.total().template cast<double>();
  }

  /// Initial U: the top k singular vectors of H1 - h2 I/2 (the paper's notation), by subspace iteration. Each iteration
  /// reads the batch once. The proof requires accuracy up to the sampling error only.
  BatchReport initialize(const Batch<Scalar>& batch) {
    // Upper limit of passes over the first batch. Sensitivity: docs/constants.md.
    constexpr int max_iterations = 12;
    // Relative increase of the sum of singular values below which the iteration ends. Sensitivity: docs/constants.md.
    constexpr double convergence_tolerance = 0.01;
    // Twice the rank, because oversampling accelerates subspace iteration.
    const Index columns = std::min(2 * options.shape.rank, std::min(sides.left_count(), sides.right_count()));
    const Model<double> start = random_start<double>(options, columns);
    Model<double> zero_model(options.shape.dim, 0, options.shape.left_dim);
    zero_model.squares = start.squares;
    RowMajorMatrix<double> Z = as_row_major(start.factors, options.shape.dim, columns);
    LowRankFactorization<double> top;
    double previous_sum = 0;
    MomentSums<double> sums(options.shape.dim, columns, false);
    for (int iteration = 0; iteration < max_iterations; ++iteration) {
      FeatureMoments features(0);
      sums = accumulate_sums(batch, zero_model, Z, iteration == 0 ? &features : nullptr);
      if (sums.rows == 0 || !sums.is_finite()) break;
      if (iteration == 0) estimator.add_feature_moments(features);
      const RowMajorMatrix<double> HZ = estimator.estimate(sums, Z).dM_times_Z;
      top = truncate_to_rank<double>(sides, Z, sides.left(Z).transpose() * sides.left(HZ), options.shape.rank,
                                     EigenvalueSelection::largest);
      const double sum = top.values.cwiseAbs().sum();
      if (sum - previous_sum < convergence_tolerance * sum) break;
      previous_sum = sum;
      Z = sides.orthonormal_sides<double>(HZ);
    }
    return apply_step(iterate, sums, [&] {
      Model<double> start_model = iterate.full;
      start_model.factors.assign(top.vectors.data(), top.vectors.data() + top.vectors.size());
      return zero_iterate(start_model);
    });
  }

  /// One iteration: U+ = QR((M + dM) U) and V+ = (M + dM) U+, in two passes over the batch. Bilinear:
  /// U+ = QR((M + dM) V) and V+ = (M + dM)'U+.
  BatchReport advance(const Batch<Scalar>& batch) {
    const Model<double>& current = iterate.full;
    FeatureMoments features(0);
    const MomentSums<double> sums = accumulate_sums(batch, current, iterate.probe, &features);
    return apply_step(iterate, sums, [&] {
      estimator.add_feature_moments(features);
      const ModelChange change = estimator.estimate(sums, iterate.probe);
      const RowMajorMatrix<double> Y = sides.interactions_times(current, iterate.probe) + change.dM_times_Z;
      const RowMajorMatrix<double> U = orthonormalize<double>(sides.left(Y));

      RowMajorMatrix<double> Z = RowMajorMatrix<double>::Zero(options.shape.dim, options.shape.rank);
      Z.topRows(U.rows()) = U;
      const MomentSums<double> second_sums = accumulate_sums(batch, current, Z, nullptr);
      const RowMajorMatrix<double> V = sides.right(
          RowMajorMatrix<double>(sides.interactions_times(current, Z) + estimator.estimate(second_sums, Z).dM_times_Z));
      return assemble(U, V, sums, change);
    });
  }

  /// Iterate with M = (UV' + VU')/2 = [U, V] core [U, V]'; bilinear: M = UV'.
  [[nodiscard]] PaperIterate assemble(const RowMajorMatrix<double>& U, const RowMajorMatrix<double>& V,
                                      const MomentSums<double>& sums, const ModelChange& change) const {
    const Index k = options.shape.rank;
    PaperIterate next = iterate;
    Matrix<double> factors;
    Matrix<double> core;
    if (sides.is_bilinear()) {
      factors.resize(options.shape.dim, k);
      factors << U, V;
      core.setIdentity(k, k);
      next.probe << U, orthonormalize<double>(V);
    } else {
      factors = concatenate_columns<double>(U, V);
      core.setZero(2 * k, 2 * k);
      core.topRightCorner(k, k).diagonal().setConstant(0.5);
      core.bottomLeftCorner(k, k).diagonal().setConstant(0.5);
      next.probe = U;
    }
    const Index full_rank = std::min(core.rows(), options.shape.dim);
    set_interactions(next.full,
                     truncate_to_rank<double>(sides, factors, core, full_rank, EigenvalueSelection::largest));
    estimator.complete_model(next.full, iterate.full, sums, change);

    next.leading = next.full;
    set_interactions(next.leading, truncate_to_rank<double>(sides, factors, core, k,
                                                            options.shape.positive ? EigenvalueSelection::positive
                                                                                   : EigenvalueSelection::largest));
    if (!next.full.squares.empty())  // the coefficients M_jj + squares_j do not change
      as_vector(next.leading.squares) += diagonal_of_interactions(next.full) - diagonal_of_interactions(next.leading);
    return next;
  }
};

template <typename Scalar>
PaperSolver<Scalar>::PaperSolver(const MomentOptions& options) {
  options.validate();
  state_ = std::make_unique<State>(options);
}

template <typename Scalar>
PaperSolver<Scalar>::~PaperSolver() = default;
template <typename Scalar>
PaperSolver<Scalar>::PaperSolver(PaperSolver&&) noexcept = default;
template <typename Scalar>
PaperSolver<Scalar>& PaperSolver<Scalar>::operator=(PaperSolver&&) noexcept = default;

template <typename Scalar>
BatchReport PaperSolver<Scalar>::update(const Batch<Scalar>& batch) {
  return state_->update(batch);
}

template <typename Scalar>
bool PaperSolver<Scalar>::has_started() const {
  return state_->has_started;
}

template <typename Scalar>
const Model<Scalar>& PaperSolver<Scalar>::model() const {
  return state_->leading;
}

template <typename Scalar>
const Model<Scalar>& PaperSolver<Scalar>::full_model() const {
  return state_->full;
}

template <typename Scalar>
Moments PaperSolver<Scalar>::moments() const {
  return state_->estimator.moments();
}

template class PaperSolver<float>;
template class PaperSolver<double>;

}  // namespace dyad
