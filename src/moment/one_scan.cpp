#include <optional>
#include <stdexcept>
#include <utility>

#include <dyad/moment.h>

#include "base/workers.h"
#include "model/low_rank.h"
#include "moment/step.h"
#include "moment/sums.h"

namespace dyad {
namespace {

template <typename Scalar>
Model<Scalar> random_start(const MomentOptions& options) {
  options.validate();
  Random random(options.seed, start_stream);
  Model<Scalar> start(options.dim, options.rank);
  as_tall(start.factors, options.dim, options.rank) = random_orthonormal<Scalar>(random, options.dim, options.rank);
  return start;
}

template <typename Scalar>
void require_fitting(const Model<Scalar>& start, const MomentOptions& options) {
  if (start.dim() != options.dim || start.rank() != options.rank || !start.is_finite())
    throw std::invalid_argument("the start must be a finite model with the dim and rank of the options");
  const auto U = as_tall(start.factors, start.dim(), start.rank());
  if (!(U.transpose() * U).isIdentity(Scalar(1e-3)))
    throw std::invalid_argument("the factors of the start must have orthonormal columns");
}

}  // namespace

template <typename Scalar>
struct OneScanSolver<Scalar>::State {
  MomentOptions options;
  Workers workers;
  Model<Scalar> model;
  std::optional<MomentAccumulator<Scalar>> batch;

  State(const MomentOptions& chosen, Model<Scalar> start)
      : options(chosen), workers(chosen.threads), model(std::move(start)) {}

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
OneScanSolver<Scalar>::OneScanSolver(const MomentOptions& options)
    : OneScanSolver(options, random_start<Scalar>(options)) {}

template <typename Scalar>
OneScanSolver<Scalar>::OneScanSolver(const MomentOptions& options, Model<Scalar> start) {
  options.validate();
  require_fitting(start, options);
  state_ = std::make_unique<State>(options, std::move(start));
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
