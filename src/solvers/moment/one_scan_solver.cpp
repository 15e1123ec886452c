#include "solvers/moment/one_scan_solver.h"

#include <stdexcept>
#include <utility>

#include "model/low_rank.h"
#include "solvers/moment/coordinates.h"
#include "solvers/moment/step.h"

namespace dyad {
namespace {

template <typename Scalar>
void require_valid_start(const Model<Scalar>& start, const MomentOptions& options) {
  const auto squares = static_cast<std::size_t>(options.shape.diagonal == Diagonal::tied ? 0 : options.shape.dim);
  if (start.dim() != options.shape.dim || start.rank() != options.shape.rank ||
      start.left_dim != options.shape.left_dim || start.squares.size() != squares || !start.is_finite())
    throw std::invalid_argument(
        "start must be a finite model with the dim, left_dim, rank and diagonal of options.shape");
  const Sides sides(start);
  const auto U = as_row_major(start.factors, start.dim(), start.rank());
  // Largest deviation of U'U from the identity. Allows rounding errors of single precision.
  constexpr auto orthonormality_tolerance = Scalar(1e-3);
  const auto is_orthonormal = [&](const auto& Q) { return (Q.transpose() * Q).isIdentity(orthonormality_tolerance); };
  if (!is_orthonormal(sides.left(U)) || !is_orthonormal(sides.right(U)))
    throw std::invalid_argument("the factors of start must have orthonormal columns (bilinear: each side)");
}

}  // namespace

template <typename Scalar>
OneScan<Scalar>::OneScan(const MomentOptions& options, Model<Scalar> start, ThreadPool& pool)
    : options_(options), pool_(pool), model_(std::move(start)), estimator_(options) {}

template <typename Scalar>
MomentAccumulator<Scalar>& OneScan<Scalar>::current_batch() {
  if (!batch_)
    batch_.emplace(pool_, model_, as_row_major(model_.factors, model_.dim(), model_.rank()),
                   estimator_.required_sums());
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
  const Sums sums = take_batch_sums();
  return apply_step(next, sums.residual_sums, [&] {
    estimator_.add_feature_moments(sums.feature_moments);
    return compute_next_model(sums.residual_sums);
  });
}

template <typename Scalar>
typename OneScan<Scalar>::Sums OneScan<Scalar>::take_batch_sums() {
  Sums sums{current_batch().total(), current_batch().features()};
  batch_.reset();
  return sums;
}

template <typename Scalar>
bool OneScan<Scalar>::discard_overflowed_sums() {
  if (!batch_ || batch_->total().is_finite()) return false;
  batch_.reset();
  return true;
}

template <typename Scalar>
void OneScan<Scalar>::restore_batch_sums(const Sums& sums) {
  batch_.reset();
  current_batch().restore(sums.residual_sums, sums.feature_moments);
}

template <typename Scalar>
void OneScan<Scalar>::Sums::archive(Archive& archive) {
  archive.group(
      "sums", [&] { residual_sums.archive(archive, residual_sums.moments.rows(), residual_sums.moments.cols() - 1); });
  if (feature_moments.dim() > 0)
    archive.group("batch_features", [&] { feature_moments.archive(archive, feature_moments.dim()); });
}

template <typename Scalar>
Model<Scalar> OneScan<Scalar>::compute_next_model(const MomentSums<Scalar>& batch) const {
  const Model<double> model = model_cast<double>(model_);
  const MomentSums<double> sums = batch.template cast<double>();
  if (options_.standardization == Standardization::none) return model_cast<Scalar>(compute_step(model, sums));
  const Coordinates coordinates(estimator_.features(), options_.standardization == Standardization::center);
  const auto standard = coordinates.to_standard(model);
  return model_cast<Scalar>(
      coordinates.from_standard(compute_step(standard.model, coordinates.to_standard(sums, model, standard))));
}

/// Symmetric: M+ = the best rank-k approximation of U Y' + Y U' - U (U'Y) U' with Y = (M + dM) U. Bilinear: that of
/// U Y_right' + Y_left V' - U (U'Y_left) V' with Y_left = (M + dM) V and Y_right = (M + dM)'U. Both are
/// [U, Y_left] core [V, Y_right]' with core = [-U'Y_left, I; I, 0].
template <typename Scalar>
Model<double> OneScan<Scalar>::compute_step(const Model<double>& model, const MomentSums<double>& sums) const {
  const Index k = model.rank();
  const Sides sides(model);
  const RowMajorMatrix<double> factors = as_row_major(model.factors, model.dim(), k);
  const ModelChange change = estimator_.estimate(sums, factors);
  const RowMajorMatrix<double> Y = sides.interactions_times(model, factors) + change.dM_times_Z;
  Matrix<double> core(2 * k, 2 * k);
  core << -sides.left(factors).transpose() * sides.left(Y), Matrix<double>::Identity(k, k),
      Matrix<double>::Identity(k, k), Matrix<double>::Zero(k, k);

  Model<double> next = model;
  set_interactions(next, truncate_to_rank<double>(
                             sides, concatenate_columns<double>(factors, Y), core, k,
                             options_.shape.positive ? EigenvalueSelection::positive : EigenvalueSelection::largest));
  estimator_.complete_model(next, model, sums, change);
  return next;
}

template <typename Scalar>
void OneScan<Scalar>::grow(const FeatureGrowth& growth) {
  if (growth.is_empty()) return;
  grow_model(model_, growth);
  estimator_.grow(growth);
  if (batch_) batch_->grow(growth);
}

template <typename Scalar>
void OneScan<Scalar>::archive(Archive& archive) {
  archive.group("model", [&] { archive_model(archive, model_); });
  archive.group("estimator", [&] { estimator_.archive(archive); });
  bool has_batch = batch_.has_value();
  archive.number("inside_a_batch", has_batch);
  if (!has_batch) return;
  // Collects the sums of all threads in the first one, also if training continues, so that a resumed run adds in the
  // same order.
  Sums sums = take_batch_sums();
  sums.archive(archive);
  restore_batch_sums(sums);
}

template <typename Scalar>
void grow_model(Model<Scalar>& model, const FeatureGrowth& growth) {
  const auto grow = [&](std::vector<Scalar>& numbers, Index columns) {
    const RowMajorMatrix<Scalar> after = growth.insert_zero_rows(as_row_major(numbers, model.dim(), columns));
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
  require_valid_start(start, options);
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
template void grow_model(Model<float>&, const FeatureGrowth&);
template void grow_model(Model<double>&, const FeatureGrowth&);
template void archive_model(Archive&, Model<float>&);
template void archive_model(Archive&, Model<double>&);
template class OneScanSolver<float>;
template class OneScanSolver<double>;

}  // namespace dyad
