#include <optional>
#include <stdexcept>
#include <utility>

#include <dyad/moment.h>

#include "base/workers.h"
#include "model/low_rank.h"
#include "moment/change.h"
#include "moment/step.h"
#include "moment/sums.h"

namespace dyad {
namespace {

template <typename Scalar>
void require_fitting(const Model<Scalar>& start, const MomentOptions& options) {
  const auto squares = static_cast<std::size_t>(options.diagonal == Diagonal::tied ? 0 : options.dim);
  if (start.dim() != options.dim || start.rank() != options.rank || start.left_dim != options.left_dim ||
      start.squares.size() != squares || !start.is_finite())
    throw std::invalid_argument("the start must be a finite model with the dim, rank and diagonal of the options");
  const Sides sides(start);
  const auto U = as_tall(start.factors, start.dim(), start.rank());
  const auto is_orthonormal = [](const auto& Q) { return (Q.transpose() * Q).isIdentity(Scalar(1e-3)); };
  if (!is_orthonormal(sides.left(U)) || !is_orthonormal(sides.right(U)))
    throw std::invalid_argument("the factors of the start must have orthonormal columns");
}

}  // namespace

template <typename Scalar>
struct OneScanSolver<Scalar>::State {
  MomentOptions options;
  Workers workers;
  Model<Scalar> model;
  ChangeEstimator estimator;
  std::optional<MomentAccumulator<Scalar>> batch;

  State(const MomentOptions& chosen, Model<Scalar> start)
      : options(chosen), workers(chosen.threads), model(std::move(start)), estimator(chosen) {}

  [[nodiscard]] auto U() const { return as_tall(model.factors, model.dim(), model.rank()); }

  MomentAccumulator<Scalar>& current_batch() {
    if (!batch) batch.emplace(workers, model, U(), estimator.wanted());
    return *batch;
  }

  /// Symmetric: M+ = the best rank-k part of U Y' + Y U' - U (U'Y) U' with Y = (M + dM) U. Bilinear: of
  /// U Y_right' + Y_left V' - U (U'Y_left) V' with Y_left = (M + dM) V, Y_right = (M + dM)'U. One formula, by sides.
  [[nodiscard]] Model<Scalar> next_model(const MomentSums<Scalar>& sums) const {
    const Index k = model.rank();
    const Sides sides(model);
    const Tall<Scalar> factors = U();
    const Change<Scalar> change = estimator.change(sums, factors);
    const Tall<Scalar> Y = sides.interactions_times(model, factors) + change.dM_times_Z;
    Small<Scalar> core(2 * k, 2 * k);
    core << -sides.left(factors).transpose() * sides.left(Y), Small<Scalar>::Identity(k, k),
        Small<Scalar>::Identity(k, k), Small<Scalar>::Zero(k, k);

    Model<Scalar> next = model;
    set_interactions(next, best_rank_k<Scalar>(sides, side_by_side<Scalar>(factors, Y), core, k,
                                               options.positive ? Keep::positive : Keep::largest));
    estimator.finish(next, model, sums, change);
    return next;
  }
};

template <typename Scalar>
OneScanSolver<Scalar>::OneScanSolver(const MomentOptions& options)
    : OneScanSolver(options, random_start<Scalar>(options, options.rank)) {}

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
  const FeatureMoments features = state_->current_batch().features();
  state_->batch.reset();
  return step(state_->model, sums, [&] {
    state_->estimator.learn(features);
    return state_->next_model(sums);
  });
}

template <typename Scalar>
const Model<Scalar>& OneScanSolver<Scalar>::model() const {
  return state_->model;
}

template <typename Scalar>
Moments OneScanSolver<Scalar>::moments() const {
  return state_->estimator.moments();
}

template class OneScanSolver<float>;
template class OneScanSolver<double>;

}  // namespace dyad
