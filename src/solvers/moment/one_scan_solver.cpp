#include "solvers/moment/one_scan_solver.h"

#include <stdexcept>
#include <utility>

#include "model/low_rank.h"
#include "solvers/moment/coordinates.h"
#include "solvers/moment/step.h"

namespace dyad {
namespace {

template <typename Scalar>
void require_fitting(const Model<Scalar>& start, const MomentOptions& options) {
  const auto squares = static_cast<std::size_t>(options.shape.diagonal == Diagonal::tied ? 0 : options.shape.dim);
  if (start.dim() != options.shape.dim || start.rank() != options.shape.rank ||
      start.left_dim != options.shape.left_dim || start.squares.size() != squares || !start.is_finite())
    throw std::invalid_argument("the start must be a finite model with the dim, rank and diagonal of the options");
  const Sides sides(start);
  const auto U = as_tall(start.factors, start.dim(), start.rank());
  const auto is_orthonormal = [](const auto& Q) { return (Q.transpose() * Q).isIdentity(Scalar(1e-3)); };
  if (!is_orthonormal(sides.left(U)) || !is_orthonormal(sides.right(U)))
    throw std::invalid_argument("the factors of the start must have orthonormal columns");
}

}  // namespace

template <typename Scalar>
OneScan<Scalar>::OneScan(const MomentOptions& options, Model<Scalar> start, ThreadPool& pool)
    : options_(options), pool_(pool), model_(std::move(start)), estimator_(options) {}

template <typename Scalar>
MomentAccumulator<Scalar>& OneScan<Scalar>::current_batch() {
  if (!batch_) batch_.emplace(pool_, model_, as_tall(model_.factors, model_.dim(), model_.rank()), estimator_.wanted());
  return *batch_;
}

template <typename Scalar>
void OneScan<Scalar>::observe(const Rows<Scalar>& rows, std::span<Scalar> residuals) {
  try {
    current_batch().add(rows, residuals);
  } catch (...) {
    batch_.reset();
    throw;
  }
}

template <typename Scalar>
BatchReport OneScan<Scalar>::end_batch(Model<Scalar>& next) {
  const Sums sums = take_batch();
  return step(next, sums.of_residuals, [&] {
    estimator_.learn(sums.of_features);
    return next_model(sums.of_residuals);
  });
}

template <typename Scalar>
typename OneScan<Scalar>::Sums OneScan<Scalar>::take_batch() {
  Sums sums{current_batch().total(), current_batch().features()};
  batch_.reset();
  return sums;
}

template <typename Scalar>
bool OneScan<Scalar>::drop_overflow() {
  if (!batch_ || batch_->total().is_finite()) return false;
  batch_.reset();
  return true;
}

template <typename Scalar>
void OneScan<Scalar>::put_batch(const Sums& sums) {
  batch_.reset();
  current_batch().restore(sums.of_residuals, sums.of_features);
}

template <typename Scalar>
void OneScan<Scalar>::Sums::archive(Archive& archive) {
  archive.group("sums",
                [&] { of_residuals.archive(archive, of_residuals.moments.rows(), of_residuals.moments.cols() - 1); });
  if (of_features.dim() > 0) archive.group("batch_features", [&] { of_features.archive(archive, of_features.dim()); });
}

template <typename Scalar>
Model<Scalar> OneScan<Scalar>::next_model(const MomentSums<Scalar>& batch) const {
  const Model<double> model = model_cast<double>(model_);
  const MomentSums<double> sums = batch.template cast<double>();
  if (options_.standardise == Standardise::no) return model_cast<Scalar>(step_from(model, sums));
  const Coordinates coordinates(estimator_.features(), options_.standardise == Standardise::centre);
  const auto standard = coordinates.standard(model);
  return model_cast<Scalar>(coordinates.raw(step_from(standard.model, coordinates.standard(sums, model, standard))));
}

/// Symmetric: M+ = the best rank-k part of U Y' + Y U' - U (U'Y) U' with Y = (M + dM) U. Bilinear: of
/// U Y_right' + Y_left V' - U (U'Y_left) V' with Y_left = (M + dM) V, Y_right = (M + dM)'U. One formula, by sides.
template <typename Scalar>
Model<double> OneScan<Scalar>::step_from(const Model<double>& model, const MomentSums<double>& sums) const {
  const Index k = model.rank();
  const Sides sides(model);
  const Tall<double> factors = as_tall(model.factors, model.dim(), k);
  const Change change = estimator_.change(sums, factors);
  const Tall<double> Y = sides.interactions_times(model, factors) + change.dM_times_Z;
  Small<double> core(2 * k, 2 * k);
  core << -sides.left(factors).transpose() * sides.left(Y), Small<double>::Identity(k, k),
      Small<double>::Identity(k, k), Small<double>::Zero(k, k);

  Model<double> next = model;
  set_interactions(next, best_rank_k<double>(sides, side_by_side<double>(factors, Y), core, k,
                                             options_.shape.positive ? Keep::positive : Keep::largest));
  estimator_.finish(next, model, sums, change);
  return next;
}

template <typename Scalar>
void OneScan<Scalar>::grow(const Growth& growth) {
  if (growth.is_none()) return;
  grow_model(model_, growth);
  estimator_.grow(growth);
  if (batch_) batch_->grow(growth);
}

template <typename Scalar>
void OneScan<Scalar>::archive(Archive& archive) {
  archive.group("model", [&] { archive_model(archive, model_); });
  archive.group("estimator", [&] { estimator_.archive(archive); });
  bool inside = batch_.has_value();
  archive.number("inside_a_batch", inside);
  if (!inside) return;
  // All threads' sums become those of the first, whether the run ends here or goes on.
  Sums sums = take_batch();
  sums.archive(archive);
  put_batch(sums);
}

template <typename Scalar>
void grow_model(Model<Scalar>& model, const Growth& growth) {
  const auto grow = [&](std::vector<Scalar>& numbers, Index columns) {
    const Tall<Scalar> after = growth.grown(as_tall(numbers, model.dim(), columns));
    return std::vector<Scalar>(after.data(), after.data() + after.size());
  };
  std::vector<Scalar> factors = grow(model.factors, model.rank());
  std::vector<Scalar> squares = model.squares.empty() ? model.squares : grow(model.squares, 1);
  model.weights = grow(model.weights, 1);
  model.factors = std::move(factors);
  model.squares = std::move(squares);
  if (model.is_bilinear()) model.left_dim = growth.left_after;
}

template <typename Scalar>
void archive_model(Archive& archive, Model<Scalar>& model) {
  const Index dim = model.dim();
  archive.number("intercept", model.intercept);
  archive.vector("weights", model.weights, dim);
  archive.vector("factors", model.factors, dim * model.rank());
  archive.vector("spectrum", model.spectrum, model.rank());
  archive.vector("squares", model.squares, static_cast<Index>(model.squares.size()));
}

template <typename Scalar>
struct OneScanSolver<Scalar>::State {
  State(const MomentOptions& options, Model<Scalar> start)
      : pool(options.threads), one_scan(options, std::move(start), pool) {}

  ThreadPool pool;
  OneScan<Scalar> one_scan;
};

template <typename Scalar>
OneScanSolver<Scalar>::OneScanSolver(const MomentOptions& options)
    : OneScanSolver(options, random_start<Scalar>(options, options.shape.rank)) {}

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
  state_->one_scan.observe(rows);
}

template <typename Scalar>
BatchReport OneScanSolver<Scalar>::update() {
  Model<Scalar> next = state_->one_scan.model();
  const BatchReport report = state_->one_scan.end_batch(next);
  state_->one_scan.set_model(std::move(next));
  return report;
}

template <typename Scalar>
const Model<Scalar>& OneScanSolver<Scalar>::model() const {
  return state_->one_scan.model();
}

template <typename Scalar>
Moments OneScanSolver<Scalar>::moments() const {
  return state_->one_scan.moments();
}

template class OneScan<float>;
template class OneScan<double>;
template void grow_model(Model<float>&, const Growth&);
template void grow_model(Model<double>&, const Growth&);
template void archive_model(Archive&, Model<float>&);
template void archive_model(Archive&, Model<double>&);
template class OneScanSolver<float>;
template class OneScanSolver<double>;

}  // namespace dyad
