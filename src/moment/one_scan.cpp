#include <optional>

#include <dyad/moment.h>

#include "base/workers.h"
#include "model/low_rank.h"
#include "moment/step.h"
#include "moment/sums.h"

namespace dyad {

template <typename Scalar>
struct OneScanSolver<Scalar>::State {
  MomentOptions options;
  Workers workers;
  Model<Scalar> model;
  std::optional<MomentAccumulator<Scalar>> batch;

  explicit State(const MomentOptions& chosen)
      : options(chosen), workers(chosen.threads), model(chosen.dim, chosen.rank) {
    Random random(chosen.seed, start_stream);
    as_tall(model.factors, model.dim(), model.rank()) =
        random_orthonormal<Scalar>(random, model.dim(), model.rank());
  }

  [[nodiscard]] auto U() const { return as_tall(model.factors, model.dim(), model.rank()); }

  MomentAccumulator<Scalar>& current_batch() {
    if (!batch) batch.emplace(workers, model, U());
    return *batch;
  }

  /// M+ = the best rank-k part of U Y' + Y U' - U (U'Y) U' with Y = (M + dM) U.
  [[nodiscard]] Model<Scalar> next_model(const MomentSums<Scalar>& sums) const {
    const Index k = model.rank();
    const auto n = static_cast<Scalar>(sums.rows);
    const Tall<Scalar> Y = U() * as_vector(model.spectrum).asDiagonal() + interaction_change<Scalar>(sums, U());
    Small<Scalar> core(2 * k, 2 * k);
    core << -U().transpose() * Y, Small<Scalar>::Identity(k, k), Small<Scalar>::Identity(k, k),
        Small<Scalar>::Zero(k, k);

    Model<Scalar> next = model;
    set_interactions(next, best_rank_k<Scalar>(side_by_side<Scalar>(U(), Y), core, k,
                                               options.positive ? Keep::positive : Keep::largest));
    if (options.linear) as_vector(next.weights) += sums.p1() / n;
    if (options.intercept) next.intercept += static_cast<Scalar>(sums.p0) / n - (next.trace() - model.trace());
    return next;
  }
};

template <typename Scalar>
OneScanSolver<Scalar>::OneScanSolver(const MomentOptions& options) {
  options.validate();
  state_ = std::make_unique<State>(options);
}

template <typename Scalar>
OneScanSolver<Scalar>::~OneScanSolver() = default;
template <typename Scalar>
OneScanSolver<Scalar>::OneScanSolver(OneScanSolver&&) noexcept = default;
template <typename Scalar>
OneScanSolver<Scalar>& OneScanSolver<Scalar>::operator=(OneScanSolver&&) noexcept = default;

template <typename Scalar>
void OneScanSolver<Scalar>::observe(const Rows<Scalar>& rows) {
  try {
    state_->current_batch().add(rows);
  } catch (...) {
    state_->batch.reset();
    throw;
  }
}

template <typename Scalar>
BatchReport OneScanSolver<Scalar>::update() {
  const MomentSums<Scalar> sums = state_->current_batch().total();
  state_->batch.reset();
  return step(state_->model, sums, [&] { return state_->next_model(sums); });
}

template <typename Scalar>
const Model<Scalar>& OneScanSolver<Scalar>::model() const {
  return state_->model;
}

template class OneScanSolver<float>;
template class OneScanSolver<double>;

}  // namespace dyad
