#include <algorithm>
#include <utility>

#include <dyad/moment.h>

#include "base/workers.h"
#include "model/low_rank.h"
#include "moment/step.h"
#include "moment/sums.h"

namespace dyad {
namespace {

template <typename Scalar>
MomentSums<Scalar> sums_over(const Batch<Scalar>& batch, Workers& workers, const Model<Scalar>& model,
                             const Tall<Scalar>& probe) {
  MomentAccumulator<Scalar> accumulator(workers, model, probe);
  batch([&](const Rows<Scalar>& rows) { accumulator.add(rows); });
  return accumulator.total();
}

/// One point of the sequence: M = (UV' + VU')/2, of rank up to 2k until it converges.
template <typename Scalar>
struct PaperIterate {
  Tall<Scalar> U;
  Tall<Scalar> V;
  Model<Scalar> full;     ///< b, w and all of M: what the residual is measured against
  Model<Scalar> leading;  ///< the same with the rank-k part of M: what is exported

  PaperIterate(Tall<Scalar> first, Tall<Scalar> second, Scalar intercept, Vector<Scalar> weights, Keep keep)
      : U(std::move(first)), V(std::move(second)), full(U.rows(), 0), leading(U.rows(), 0) {
    const Index k = U.cols();
    const Small<Scalar> both = side_by_side<Scalar>(U, V);
    Small<Scalar> core = Small<Scalar>::Zero(2 * k, 2 * k);
    core.topRightCorner(k, k).diagonal().setConstant(Scalar(0.5));
    core.bottomLeftCorner(k, k).diagonal().setConstant(Scalar(0.5));
    for (Model<Scalar>* model : {&full, &leading}) {
      model->intercept = intercept;
      as_vector(model->weights) = weights;
    }
    set_interactions(full, best_rank_k<Scalar>(both, core, std::min(2 * k, U.rows()), Keep::largest));
    set_interactions(leading, best_rank_k<Scalar>(both, core, k, keep));
  }

  [[nodiscard]] Tall<Scalar> M_times(const Tall<Scalar>& Z) const {
    return (U * (V.transpose() * Z) + V * (U.transpose() * Z)) / 2;
  }
  [[nodiscard]] bool is_finite() const { return full.is_finite() && leading.is_finite(); }
};

}  // namespace

template <typename Scalar>
struct PaperSolver<Scalar>::State {
  MomentOptions options;
  Workers workers;
  PaperIterate<Scalar> iterate;
  bool started = false;

  explicit State(const MomentOptions& chosen)
      : options(chosen), workers(chosen.threads), iterate(start_from(random_directions(chosen.rank))) {}

  [[nodiscard]] Tall<Scalar> random_directions(Index columns) const {
    Random random(options.seed, start_stream);
    return random_orthonormal<Scalar>(random, options.dim, columns);
  }

  /// w = 0, V = 0.
  [[nodiscard]] PaperIterate<Scalar> start_from(Tall<Scalar> U) const {
    const Tall<Scalar> V = Tall<Scalar>::Zero(U.rows(), U.cols());
    return {std::move(U), V, 0, Vector<Scalar>::Zero(V.rows()), keep()};
  }

  [[nodiscard]] Keep keep() const { return options.positive ? Keep::positive : Keep::largest; }

  /// The top-k singular vectors of H1 - h2 I/2 by subspace iteration: only products with the batch. The proof asks for
  /// them up to the sampling error, which a few iterations reach.
  BatchReport initialise(const Batch<Scalar>& batch) {
    constexpr int most_iterations = 12;
    constexpr auto settled = Scalar(0.01);
    const Index k = options.rank;
    const Model<Scalar> zero(options.dim, 0);
    Tall<Scalar> Z = random_directions(std::min(2 * k, options.dim));
    EigenForm<Scalar> top;
    Scalar found_before = 0;
    MomentSums<Scalar> sums(options.dim, Z.cols());
    for (int iteration = 0; iteration < most_iterations; ++iteration) {
      sums = sums_over(batch, workers, zero, Z);
      if (sums.rows == 0 || !sums.is_finite()) break;
      const Tall<Scalar> HZ = interaction_change<Scalar>(sums, Z);
      top = best_rank_k<Scalar>(Z, Z.transpose() * HZ, k, Keep::largest);
      const Scalar found = top.values.cwiseAbs().sum();
      if (found - found_before < settled * found) break;
      found_before = found;
      Z = orthonormal<Scalar>(HZ);
    }
    return step(iterate, sums, [&] { return start_from(top.vectors); });
  }

  BatchReport advance(const Batch<Scalar>& batch) {
    const PaperIterate<Scalar>& now = iterate;
    const MomentSums<Scalar> sums = sums_over(batch, workers, now.full, now.U);
    return step(iterate, sums, [&] {
      const Tall<Scalar> U = orthonormal<Scalar>(now.M_times(now.U) + interaction_change<Scalar>(sums, now.U));
      const MomentSums<Scalar> again = sums_over(batch, workers, now.full, U);
      const Tall<Scalar> V = now.M_times(U) + interaction_change<Scalar>(again, U);
      const auto n = static_cast<Scalar>(sums.rows);
      Vector<Scalar> weights = as_vector(now.full.weights);
      if (options.linear) weights += sums.p1() / n;
      Scalar intercept = now.full.intercept;
      if (options.intercept) {
        const Scalar trace_change = U.cwiseProduct(V).sum() - now.U.cwiseProduct(now.V).sum();
        intercept += static_cast<Scalar>(sums.p0) / n - trace_change;
      }
      return PaperIterate<Scalar>(U, V, intercept, std::move(weights), keep());
    });
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
  if (state_->started) return state_->advance(batch);
  const BatchReport report = state_->initialise(batch);
  state_->started = report.accepted;
  return report;
}

template <typename Scalar>
const Model<Scalar>& PaperSolver<Scalar>::model() const {
  return state_->iterate.leading;
}

template class PaperSolver<float>;
template class PaperSolver<double>;

}  // namespace dyad
