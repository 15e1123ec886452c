#include "solvers/moment/residual_probe.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/random.h"
#include "linalg/decompositions.h"
#include "model/low_rank.h"

namespace dyad {
namespace {

// Sensitivity of the constants: docs/constants.md, section on recovery in one pass.

/// Columns of the probe per factor of the model.
constexpr Index probes_per_factor = 2;
/// Rows in the shortest window per entry of the factors.
constexpr double window_rows_per_factor_entry = 1.5;
/// Rows since the last decrease of the residuals, divided by the rows of the next window.
constexpr Index stationary_windows = 4;
/// The residuals have decreased if the mean r^2 of a window is below this fraction of an earlier one. While the filter
/// converges without noise, the shortest window reduces it by a factor of exp(1.5 k / (k + 1)), which is 2.1 for k = 1.
constexpr double decrease_ratio = 0.5;
/// t of the significance threshold.
constexpr double significance_deviations = 4;

template <typename Scalar>
Model<Scalar> random_probe(const MomentOptions& options) {
  const ModelShape& shape = options.shape;
  const Index probes = std::min(probes_per_factor * shape.rank, shape.max_rank());
  Model<Scalar> probe(shape.dim, probes, shape.left_dim);
  Random random(options.seed, start_stream - 2);
  as_row_major(probe.factors, shape.dim, probes) =
      Sides(probe).orthonormal_sides<Scalar>(random_normal<Scalar>(random, shape.dim, probes));
  return probe;
}

}  // namespace

template <typename Scalar>
ResidualProbe<Scalar>::ResidualProbe(const MomentOptions& options, ThreadPool& pool)
    : rank_(options.shape.rank),
      pool_(pool),
      sides_(options.shape.dim, options.shape.left_dim),
      estimator_(options),
      probe_(random_probe<Scalar>(options)),
      window_rows_(min_window_rows()) {}

template <typename Scalar>
Index ResidualProbe<Scalar>::min_window_rows() const {
  return static_cast<Index>(std::ceil(window_rows_per_factor_entry * static_cast<double>(rank_ * sides_.dim)));
}

template <typename Scalar>
MomentAccumulator<Scalar>& ResidualProbe<Scalar>::window() {
  if (!window_)
    window_.emplace(pool_, probe_, as_row_major(probe_.factors, probe_.dim(), probes()), estimator_.required_sums());
  return *window_;
}

template <typename Scalar>
void ResidualProbe<Scalar>::add(const Rows<Scalar>& rows, std::span<const Scalar> residuals) {
  window().add_with_targets(rows, residuals);
  rows_ += rows.count();
}

template <typename Scalar>
std::optional<typename ResidualProbe<Scalar>::MissedDirection> ResidualProbe<Scalar>::finish_window() {
  const MomentSums<double> sums = window().total().template cast<double>();
  const FeatureMoments features = window().features();
  window_.reset();
  rows_ = 0;
  if (!sums.is_finite() || !(sums.weight > 0)) return std::nullopt;
  const double residual_variance = sums.residual_squares / sums.weight;
  set_next_window(residual_variance);
  estimator_.add_feature_moments(features);
  auto factors = as_row_major(probe_.factors, probe_.dim(), probes());
  const RowMajorMatrix<double> Z = factors.template cast<double>();
  const RowMajorMatrix<double> dM_Z = estimator_.estimate(sums, Z).dM_times_Z;
  factors = sides_.orthonormal_sides<double>(dM_Z).template cast<Scalar>();

  MissedDirection direction = leading_ritz_pair(Z, dM_Z);
  direction.residual_variance = residual_variance;
  // Gaussian features: Var[(z'x)^2] = 2 (symmetric), Var[(u'x)(v'z)] = 1 (bilinear).
  direction.explained_share = (sides_.is_bilinear() ? 1 : 2) * direction.value * direction.value / residual_variance;
  const double deviation = std::sqrt(residual_variance / sums.weight) / (sides_.is_bilinear() ? 1 : 2);
  const double threshold = deviation * (2 * std::sqrt(static_cast<double>(probes())) + significance_deviations);
  if (!(std::abs(direction.value) > threshold)) return std::nullopt;
  return direction;
}

template <typename Scalar>
void ResidualProbe<Scalar>::set_next_window(double residual_variance) {
  stationary_rows_ += window_rows_;
  if (last_variance_ == 0 || residual_variance < decrease_ratio * last_variance_) {
    last_variance_ = residual_variance;
    stationary_rows_ = 0;
  }
  window_rows_ = std::max(min_window_rows(), stationary_rows_ / stationary_windows);
}

template <typename Scalar>
typename ResidualProbe<Scalar>::MissedDirection ResidualProbe<Scalar>::leading_ritz_pair(
    const RowMajorMatrix<double>& Z, const RowMajorMatrix<double>& dM_Z) const {
  const Matrix<double> projected = sides_.left(Z).transpose() * sides_.left(dM_Z);
  MissedDirection direction;
  if (sides_.is_bilinear()) {
    const Svd<double> svd = compute_svd<double>(projected);
    direction.value = svd.values[0];
    direction.vector.resize(sides_.dim);
    direction.vector << sides_.left(Z) * svd.left.col(0), sides_.right(Z) * svd.right.col(0);
  } else {
    const SymmetricEigen<double> eigen = symmetric_eigen<double>(projected);
    Index leading = 0;
    eigen.values.cwiseAbs().maxCoeff(&leading);
    direction.value = eigen.values[leading];
    direction.vector = Z * eigen.vectors.col(leading);
  }
  return direction;
}

template <typename Scalar>
void ResidualProbe<Scalar>::archive(Archive& archive) {
  if (archive.is_loading() && !archive.has("rows")) return;
  if (!archive.is_loading() && window_ && !window_->total().is_finite()) {
    window_.reset();
    rows_ = 0;
  }
  archive.number("rows", rows_);
  archive.number("window_rows", window_rows_);
  archive.number("last_variance", last_variance_);
  archive.number("stationary_rows", stationary_rows_);
  if (!(rows_ >= 0 && rows_ < window_rows_))
    throw std::runtime_error("the training state has an invalid number of rows in the window of the probe");
  archive.vector("probe", probe_.factors, probe_.dim() * probes());
  archive.group("estimator", [&] { estimator_.archive(archive); });
  if (rows_ == 0) return;
  // The sums of all threads are moved to the first one, so that a resumed run adds in the same order.
  MomentSums<Scalar> sums = window().total();
  FeatureMoments features = window().features();
  sums.archive(archive, probe_.dim(), probes());
  if (features.dim() > 0) archive.group("features", [&] { features.archive(archive, features.dim()); });
  window_.reset();
  window().restore(sums, features);
}

template <typename Scalar>
Model<Scalar> add_direction(const Model<Scalar>& model,
                            const typename ResidualProbe<Scalar>::MissedDirection& direction, bool positive) {
  const Index k = model.rank();
  Matrix<double> vectors(model.dim(), k + 1);
  vectors << as_row_major(model.factors, model.dim(), k).template cast<double>(), direction.vector;
  Matrix<double> core = Matrix<double>::Zero(k + 1, k + 1);
  core.diagonal() << as_vector(model.spectrum).template cast<double>(), direction.value;
  Model<double> next = model_cast<double>(model);
  set_interactions(next,
                   truncate_to_rank<double>(Sides(model), vectors, core, k,
                                            positive ? EigenvalueSelection::positive : EigenvalueSelection::largest));
  // The coefficient of x_j^2 is M_jj + squares_j. For a zero or free diagonal, dM has no diagonal.
  if (!next.squares.empty())
    as_vector(next.squares) += diagonal_of_interactions(model_cast<double>(model)) - diagonal_of_interactions(next);
  return model_cast<Scalar>(next);
}

template class ResidualProbe<float>;
template class ResidualProbe<double>;
template Model<float> add_direction(const Model<float>&, const ResidualProbe<float>::MissedDirection&, bool);
template Model<double> add_direction(const Model<double>&, const ResidualProbe<double>::MissedDirection&, bool);

}  // namespace dyad
