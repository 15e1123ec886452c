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

/// One point of the sequence: M = (UV' + VU')/2, of rank up to 2k until it converges; bilinear: M = UV'.
struct PaperIterate {
  Tall<double> probe;     ///< what the next batch is projected on: U; bilinear: U above an orthonormal basis of V
  Model<double> full;     ///< with all of M: what the next residual is measured against
  Model<double> leading;  ///< with the rank-k part of M: what is exported

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
  Model<Scalar> full;     ///< the models of the iterate, in the precision of the solver
  Model<Scalar> leading;  ///<
  bool started = false;

  explicit State(const MomentOptions& chosen)
      : options(chosen),
        sides(chosen.shape.dim, chosen.shape.left_dim),
        pool(chosen.threads),
        estimator(chosen),
        iterate(from_directions(random_start<double>(chosen, chosen.shape.rank))),
        full(model_cast<Scalar>(iterate.full)),
        leading(full) {}

  BatchReport update(const Batch<Scalar>& batch) {
    const BatchReport report = started ? advance(batch) : initialise(batch);
    started = started || report.accepted;
    full = model_cast<Scalar>(iterate.full);
    leading = model_cast<Scalar>(iterate.leading);
    return report;
  }

  /// M = 0 and w = 0, with U (and V's directions) ready to be probed.
  [[nodiscard]] PaperIterate from_directions(const Model<double>& start) const {
    return {as_tall(start.factors, start.dim(), start.rank()), start, start};
  }

  MomentSums<double> look_at(const Batch<Scalar>& batch, const Model<double>& model, const Tall<double>& probe,
                             FeatureMoments* features) {
    Collect collect = estimator.wanted();
    collect.features = collect.features && features != nullptr;
    const Model<Scalar> of_rows = model_cast<Scalar>(model);
    Tall<Scalar> probe_of_rows(probe.rows(), probe.cols());
    probe_of_rows = probe.template cast<Scalar>();
    MomentAccumulator<Scalar> accumulator(pool, of_rows, probe_of_rows, collect);
    batch([&](const Rows<Scalar>& rows) { accumulator.add(rows); });
    if (collect.features) *features = accumulator.features();
    return accumulator.total().template cast<double>();
  }

  /// The top-k singular vectors of H1 - h2 I/2 by subspace iteration: only products with the batch. The proof asks for
  /// them up to the sampling error, which a few iterations reach.
  BatchReport initialise(const Batch<Scalar>& batch) {
    constexpr int most_iterations = 12;
    constexpr double settled = 0.01;
    const Index columns = std::min(2 * options.shape.rank, std::min(sides.left_count(), sides.right_count()));
    const Model<double> start = random_start<double>(options, columns);
    Model<double> nothing(options.shape.dim, 0, options.shape.left_dim);
    nothing.squares = start.squares;
    Tall<double> Z = as_tall(start.factors, options.shape.dim, columns);
    Factored<double> top;
    double found_before = 0;
    MomentSums<double> sums(options.shape.dim, columns, false);
    for (int iteration = 0; iteration < most_iterations; ++iteration) {
      FeatureMoments features(0);
      sums = look_at(batch, nothing, Z, iteration == 0 ? &features : nullptr);
      if (sums.rows == 0 || !sums.is_finite()) break;
      if (iteration == 0) estimator.learn(features);
      const Tall<double> HZ = estimator.change(sums, Z).dM_times_Z;
      top =
          best_rank_k<double>(sides, Z, sides.left(Z).transpose() * sides.left(HZ), options.shape.rank, Keep::largest);
      const double found = top.values.cwiseAbs().sum();
      if (found - found_before < settled * found) break;
      found_before = found;
      Z = sides.orthonormal_sides<double>(HZ);
    }
    return step(iterate, sums, [&] {
      Model<double> directions = iterate.full;
      directions.factors.assign(top.vectors.data(), top.vectors.data() + top.vectors.size());
      return from_directions(directions);
    });
  }

  BatchReport advance(const Batch<Scalar>& batch) {
    const Model<double>& now = iterate.full;
    FeatureMoments features(0);
    const MomentSums<double> sums = look_at(batch, now, iterate.probe, &features);
    return step(iterate, sums, [&] {
      estimator.learn(features);
      const Change change = estimator.change(sums, iterate.probe);
      const Tall<double> Y = sides.interactions_times(now, iterate.probe) + change.dM_times_Z;
      const Tall<double> U = orthonormal<double>(sides.left(Y));

      Tall<double> Z = Tall<double>::Zero(options.shape.dim, options.shape.rank);
      Z.topRows(U.rows()) = U;
      const MomentSums<double> again = look_at(batch, now, Z, nullptr);
      const Tall<double> V =
          sides.right(Tall<double>(sides.interactions_times(now, Z) + estimator.change(again, Z).dM_times_Z));
      return assemble(U, V, sums, change);
    });
  }

  [[nodiscard]] PaperIterate assemble(const Tall<double>& U, const Tall<double>& V, const MomentSums<double>& sums,
                                      const Change& change) const {
    const Index k = options.shape.rank;
    PaperIterate next = iterate;
    Small<double> both;
    Small<double> core;
    if (sides.two()) {
      both.resize(options.shape.dim, k);
      both << U, V;
      core.setIdentity(k, k);
      next.probe << U, orthonormal<double>(V);
    } else {
      both = side_by_side<double>(U, V);
      core.setZero(2 * k, 2 * k);
      core.topRightCorner(k, k).diagonal().setConstant(0.5);
      core.bottomLeftCorner(k, k).diagonal().setConstant(0.5);
      next.probe = U;
    }
    const Index full_rank = std::min(core.rows(), options.shape.dim);
    set_interactions(next.full, best_rank_k<double>(sides, both, core, full_rank, Keep::largest));
    estimator.finish(next.full, iterate.full, sums, change);

    next.leading = next.full;
    set_interactions(next.leading, best_rank_k<double>(sides, both, core, k,
                                                       options.shape.positive ? Keep::positive : Keep::largest));
    if (!next.full.squares.empty())  // the coefficients of the squares stay
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
bool PaperSolver<Scalar>::started() const {
  return state_->started;
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
