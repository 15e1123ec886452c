// Constructors and archives of a filter, and operations that change its whole posterior.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "solvers/kalman/filter.h"

namespace dyad {
namespace {

/// Rows before the first update of the hierarchical prior. Sensitivity: docs/constants.md.
constexpr double first_prior_update_rows = 200;

}  // namespace

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, double noise)
    : Base(options, prior), noise_(noise, options.unknowns_per_row()), next_prior_update_(first_prior_update_rows) {}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, const FilterGroups& prior_groups,
                                   double noise)
    : Base(options, prior, prior_groups),
      log_noise_(noise, options.unknowns_per_row()),
      feature_noise_(noise, options.unknowns_per_row()),
      next_prior_update_(first_prior_update_rows) {}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, const Model<Scalar>& model,
                                   std::span<const double> feature_scales, double residual_variance,
                                   double parameter_share)
    : KalmanFilter(options, prior, (1 - parameter_share) * residual_variance) {
  // Lower bound of |eigenvalue| relative to the largest one: df/dA is 0 for a factor of length 0. Rows to an error of
  // 1e-6 at condition number 1000 (d = 100, k = 3): the same from 1e-6 to 4e-4; no convergence at 1e-2.
  constexpr auto min_relative_strength = Scalar(1e-4);
  const auto start = SignedFactors<Scalar>::of(model, options.shape.diagonal, min_relative_strength);
  set_scales(feature_scales);
  set_means(start);
  // A row of independent standard normal features has E[g^2] = 1 for the intercept and each weight, and
  // E[g^2] = Var[x^2] = 2 for each centered square.
  const bool has_squares = options.shape.diagonal == Diagonal::free;
  const int kinds = 1 + (options.shape.linear ? 1 : 0) + (has_squares ? 1 : 0);
  const double variance = parameter_share * residual_variance / kinds / options.entries_per_row;
  intercept_variance_ = options.shape.intercept ? variance : 0;
  for (Index j = 0; j < options.shape.dim; ++j) set_variances(j, {variance, variance, variance / 2, variance});
  // Factors, for features divided by their scales. Symmetric: g = 2 p_c x_j with E[p_c^2] = sum_j A_jc^2. Bilinear: g
  // is the projection of the other side times x_j.
  const bool is_bilinear = options.shape.left_dim > 0;
  for (Index c = 0; c < options.shape.rank; ++c) {
    std::array<double, 2> squared_lengths{};
    for (Index j = 0; j < options.shape.dim; ++j)
      squared_lengths[static_cast<std::size_t>(side_of(j))] +=
          std::pow(static_cast<double>(start.A(j, c)) * feature_scales[static_cast<std::size_t>(j)], 2);
    for (Index j = 0; j < options.shape.dim; ++j) {
      const double squared_gradient =
          is_bilinear ? squared_lengths[static_cast<std::size_t>(1 - side_of(j))] : 4 * squared_lengths.front();
      record(j)[width_ + c] /= static_cast<Scalar>(std::max(static_cast<double>(options.shape.rank) * squared_gradient,
                                                            static_cast<double>(std::numeric_limits<Scalar>::min())));
    }
  }
}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, const SignedFactors<Scalar>& fit,
                                   std::span<const double> feature_scales, double noise, double residual_dof,
                                   const Rows<Scalar>& rows)
    : KalmanFilter(options, prior, noise) {
  noise_ = NoiseTracker(noise, options.unknowns_per_row(), residual_dof);
  set_scales(feature_scales);
  set_means(fit);
  for (Index j = 0; j < options_.shape.dim; ++j) set_variances(j, prior_);
  add_laplace_precisions(rows);
  rows_ = static_cast<double>(rows.count());
  std::fill(last_occurrence_.begin(), last_occurrence_.end(), rows_);
}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, const Posterior<Scalar>& posterior,
                                   std::span<const double> feature_scales, double rows)
    : KalmanFilter(options, prior, posterior.noise_variance) {
  noise_ = NoiseTracker(posterior.noise_variance, options.unknowns_per_row(), rows);
  set_scales(feature_scales);
  set_means(posterior.means);
  Base::set_variances(posterior.variances);
  rows_ = rows;
}

template <typename Scalar>
KalmanFilter<Scalar> KalmanFilter<Scalar>::without_data(double noise) const {
  if (!Base::learns_prior()) return KalmanFilter(options_, prior_, noise);
  KalmanFilter result(options_, prior_, groups_, noise);
  result.learned_prior_ = learned_prior_;
  result.set_prior_records();
  for (Index j = 0; j < options_.shape.dim; ++j) result.set_group(j, group_of(j));
  return result;
}

template <typename Scalar>
void KalmanFilter<Scalar>::merge(const NaturalParameters& combined, double rows, double noise) {
  Base::set_natural_parameters(combined);
  rows_ += rows;
  noise_ = NoiseTracker(noise, options_.unknowns_per_row(), rows_);
  if (Base::learns_prior()) log_noise_.restart(noise);
  innovation_ratio_ = 1;
  recent_squares_ = noise;
}

template <typename Scalar>
void KalmanFilter<Scalar>::set_noise_variance(double variance, double repetitions) {
  const double ratio = variance / (repetitions * noise_.value());
  rows_ *= repetitions;
  std::fill(last_occurrence_.begin(), last_occurrence_.end(), rows_);
  noise_ = NoiseTracker(variance, options_.unknowns_per_row(), rows_);
  innovation_ratio_ = 1;
  recent_squares_ = variance;
  // 1/P = 1/prior + data precision, and the data precision is divided by `ratio`.
  const auto rescale = [&]<typename Number>(Number& parameter_variance, double prior_variance) {
    if (!(parameter_variance > 0)) return;
    const double data_precision = 1 / static_cast<double>(parameter_variance) - 1 / prior_variance;
    parameter_variance =
        static_cast<Number>(data_precision > 0 ? 1 / (1 / prior_variance + data_precision / ratio) : prior_variance);
  };
  if (options_.shape.intercept) rescale(intercept_variance_, prior_.intercept);
  for (Index j = 0; j < options_.shape.dim; ++j) {
    Scalar* feature = record(j);
    if (!(feature[scale_offset()] > 0)) continue;
    const double inverse_square = 1 / std::pow(static_cast<double>(feature[scale_offset()]), 2);
    for (Index c = 0; c < options_.shape.rank; ++c) rescale(feature[width_ + c], prior_.factors * inverse_square);
    rescale(feature[weight_offset() + 1], prior_.weights * inverse_square);
    rescale(feature[square_offset() + 1], prior_.squares * inverse_square * inverse_square);
  }
}

/// Keeps the means, resets the variances to those of the prior, and restarts the noise variance from half of the recent
/// mean of r^2.
template <typename Scalar>
void KalmanFilter<Scalar>::reset_variances() {
  innovation_ratio_ = 1;
  noise_.restart(recent_squares_ / 2);
  if (Base::learns_prior()) log_noise_.restart(recent_squares_ / 2);
  for (Index j = 0; j < options_.shape.dim; ++j) set_variances(j, prior_);
  if (options_.shape.intercept) intercept_variance_ = prior_.intercept;
}

template <typename Scalar>
std::optional<KalmanFilter<Scalar>> KalmanFilter<Scalar>::with_weak_factors_sign_flipped() const {
  // A factor is weak if its |eigenvalue| is below this fraction of the largest one. Sensitivity: docs/constants.md.
  constexpr double weak_eigenvalue_ratio = 0.1;
  if (options_.shape.left_dim > 0 || options_.shape.positive) return std::nullopt;
  const std::vector<double> feature_scales = Base::scales();
  std::vector<double> inverse_scales(feature_scales);
  for (double& scale : inverse_scales) scale = scale > 0 ? 1 / scale : 0;
  // Factors of opposite signs can cancel. Therefore, their contribution to M is measured by the eigenvalues of M, for
  // features divided by their scales, and not by their lengths.
  SignedFactors<Scalar> scaled_means = parameters();
  scaled_means.scale_features(feature_scales);
  const Model<Scalar> eigen = scaled_means.model();
  const double weak_threshold = weak_eigenvalue_ratio * std::abs(static_cast<double>(eigen.spectrum.front()));
  if (!(std::abs(static_cast<double>(eigen.spectrum.back())) < weak_threshold)) return std::nullopt;
  SignedFactors<Scalar> eigen_factors = SignedFactors<Scalar>::of(eigen, options_.shape.diagonal, Scalar(0));
  eigen_factors.scale_features(inverse_scales);
  // All variances restart from the residual variance, because the strong factors change together with the weak ones.
  const bool is_unscaled =
      std::all_of(feature_scales.begin(), feature_scales.end(), [](double s) { return s == 1 || s == 0; });
  KalmanFilter copy(options_, prior_, is_unscaled ? eigen : parameters().model(), feature_scales, noise_variance());
  copy.set_means(eigen_factors);
  copy.sign_flips_ = sign_flips_ + 1;
  copy.rows_ = rows_;
  copy.last_occurrence_ = last_occurrence_;
  for (Index c = 0; c < options_.shape.rank; ++c) {
    const bool is_weak = std::abs(static_cast<double>(eigen.spectrum[static_cast<std::size_t>(c)])) < weak_threshold;
    copy.signs_[static_cast<std::size_t>(c)] = is_weak ? -eigen_factors.signs[c] : eigen_factors.signs[c];
    if (!is_weak) continue;
    for (Index j = 0; j < options_.shape.dim; ++j) {
      copy.draw_random_factor(j, c);
      copy.record(j)[width_ + c] =
          static_cast<Scalar>(prior_.factors * std::pow(inverse_scales[static_cast<std::size_t>(j)], 2));
    }
  }
  return copy;
}

template <typename Scalar>
void KalmanFilter<Scalar>::archive(Archive& archive) {
  Base::archive(archive);
  archive.number("surprise", innovation_ratio_);
  archive.number("recent_squares", recent_squares_);
  archive.group("noise", [&] { Base::learns_prior() ? log_noise_.archive(archive) : noise_.archive(archive); });
  if (!Base::learns_prior()) return;
  archive.number("next_prior_update", next_prior_update_);
  archive.group("feature_noise", [&] { feature_noise_.archive(archive); });
}

// The other members are instantiated in filter.cpp.
template KalmanFilter<float>::KalmanFilter(const KalmanOptions&, const Prior&, double);
template KalmanFilter<float>::KalmanFilter(const KalmanOptions&, const Prior&, const FilterGroups&, double);
template KalmanFilter<double>::KalmanFilter(const KalmanOptions&, const Prior&, double);
template KalmanFilter<double>::KalmanFilter(const KalmanOptions&, const Prior&, const FilterGroups&, double);
template KalmanFilter<float>::KalmanFilter(const KalmanOptions&, const Prior&, const Model<float>&,
                                           std::span<const double>, double, double);
template KalmanFilter<double>::KalmanFilter(const KalmanOptions&, const Prior&, const Model<double>&,
                                            std::span<const double>, double, double);
template KalmanFilter<float>::KalmanFilter(const KalmanOptions&, const Prior&, const SignedFactors<float>&,
                                           std::span<const double>, double, double, const Rows<float>&);
template KalmanFilter<double>::KalmanFilter(const KalmanOptions&, const Prior&, const SignedFactors<double>&,
                                            std::span<const double>, double, double, const Rows<double>&);
template KalmanFilter<float>::KalmanFilter(const KalmanOptions&, const Prior&, const Posterior<float>&,
                                           std::span<const double>, double);
template KalmanFilter<double>::KalmanFilter(const KalmanOptions&, const Prior&, const Posterior<double>&,
                                            std::span<const double>, double);
template KalmanFilter<float> KalmanFilter<float>::without_data(double) const;
template KalmanFilter<double> KalmanFilter<double>::without_data(double) const;
template void KalmanFilter<float>::merge(const NaturalParameters&, double, double);
template void KalmanFilter<double>::merge(const NaturalParameters&, double, double);
template void KalmanFilter<float>::set_noise_variance(double, double);
template void KalmanFilter<double>::set_noise_variance(double, double);
template void KalmanFilter<float>::reset_variances();
template void KalmanFilter<double>::reset_variances();
template std::optional<KalmanFilter<float>> KalmanFilter<float>::with_weak_factors_sign_flipped() const;
template std::optional<KalmanFilter<double>> KalmanFilter<double>::with_weak_factors_sign_flipped() const;
template void KalmanFilter<float>::archive(Archive&);
template void KalmanFilter<double>::archive(Archive&);

}  // namespace dyad
