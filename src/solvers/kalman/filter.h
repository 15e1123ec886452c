#pragma once

#include <cmath>
#include <optional>
#include <span>

#include "solvers/kalman/feature_noise.h"
#include "solvers/kalman/filter_parameters.h"
#include "solvers/kalman/log_noise.h"
#include "solvers/kalman/noise.h"
#include "solvers/kalman/row_kernels.h"

namespace dyad {

/// Online Bayesian learning with an extended Kalman filter. This folder contains the filter, its parameters and noise
/// estimate, a search for a start in phase retrieval (PhaseSearch), and the variance of predictions with unknown
/// features (UnknownFeatures).
///
/// The posterior is Gaussian with a mean theta and a variance P for each parameter (diagonal covariance). The
/// parameters are b, w, the coefficients of squares (free diagonal) and A with M = A diag(signs) A', or
/// M = A_left diag(signs) A_right' (bilinear). For a row with prediction f, gradient g = df/dtheta, v = sum P g^2 and
/// noise variance s2, the update of regression is
///   S = s2 + v      theta += P g (y - f) / S      P -= (P g)^2 / S.
/// Other likelihoods: Likelihood::update. There is no step size. Each row is read once. See docs/method.md.
///
/// With a hierarchical prior (HierarchicalPrior), the prior variances and group means are estimated along the stream, v
/// contains the variance of the products of factors, and the predictions of classes are averaged over the posterior.
///
/// Not thread-safe. Const functions can run concurrently.
template <typename Scalar>
class KalmanFilter : private FilterParameters<Scalar> {
  using Base = FilterParameters<Scalar>;

 public:
  /// Starts from the prior, without features. `noise`: initial noise variance.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, double noise);

  /// Starts from a hierarchical prior with the initial variances `prior`, without features.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const FilterGroups& groups, double noise);

  /// Starts from the parameters of `model`. `residual_variance`: variance of its residuals on rows that it was not
  /// fitted to. The share `parameter_share` of it is attributed to the parameters, the rest to the noise. Weights,
  /// squares and interactions contribute equally to it, and so do the factors: the variance of an entry of A is
  /// inversely proportional to the squared length of its factor. Weak factors then converge as fast as strong ones.
  /// `feature_scales`: typical size of the non-zero values of each feature; 0: the feature has not occurred.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const Model<Scalar>& model,
               std::span<const double> feature_scales, double residual_variance, double parameter_share = 0.5);

  /// Starts from a least-squares or maximum-likelihood fit to `rows`, with its Laplace variances. `residual_dof`:
  /// residual degrees of freedom (rows minus unknowns) from which `noise` was estimated.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const SignedFactors<Scalar>& fit,
               std::span<const double> feature_scales, double noise, double residual_dof, const Rows<Scalar>& rows);

  /// Starts from a posterior with variances. `rows`: number of rows from which it was computed.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const Posterior<Scalar>& posterior,
               std::span<const double> feature_scales, double rows);

  using Base::add_feature;
  using Base::factor_signs;
  using Base::feature_groups;
  using Base::feature_posterior;
  using Base::groups;
  using Base::grow;
  using Base::is_finite;
  using Base::learned_prior;
  using Base::learns_prior;
  using Base::natural_parameter_count;
  using Base::natural_parameters;
  using Base::parameters;
  using Base::prior_sums;
  using Base::prior_variances;
  using Base::scales;
  using Base::set_group;
  using Base::update_prior;

  /// Learns the rows in sequence. Writes the prediction of each row before its update. With a hierarchical prior, the
  /// prediction is averaged over the posterior (Likelihood::posterior_predictor). Throws std::invalid_argument if rows
  /// and filter have different numbers of features.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  /// Prepares for relearn() after the first pass: the random prior means of the factors are no longer part of the
  /// prior.
  void start_further_passes();
  /// Learns rows that were learned before, by stochastic expectation propagation (Li, Hernandez-Lobato and Turner
  /// 2015). Before a row, the share 1/n_j of the evidence of each of its features is removed, where n_j is the number
  /// of rows with the feature (`feature_rows`), and the share 1/rows of that of the intercept and the group means.
  /// `all_rows`: number of rows. The noise variance and the prior do not change. For hierarchical priors.
  void relearn(const Rows<Scalar>& rows, std::span<const float> feature_rows, double all_rows);

  /// Writes the linear predictor f of each row and its variance v, without the noise. f is the expected target
  /// (regression) or the log-odds (classification). With a hierarchical prior, rows can contain unknown features: the
  /// index dim + g is a feature of group g without data.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> variances) const;

  /// Writes the noise variance of each row: noise_variance(), or that of FeatureNoise if its predictive likelihood is
  /// larger. `have_unknown`: rows with features that are not in `rows`.
  void noise_variances(const Rows<Scalar>& rows, const std::vector<bool>& have_unknown,
                       std::span<Scalar> variances) const;

  /// A copy in which each weak factor (small eigenvalue of M) has the opposite sign, random means and prior variances.
  /// A factor with the wrong sign shrinks to 0 during training and cannot change its sign. std::nullopt if no factor is
  /// weak, or if the signs are fixed (bilinear, positive).
  [[nodiscard]] std::optional<KalmanFilter> with_weak_factors_sign_flipped() const;

  /// A filter with the prior of this one, without features and data. `noise`: initial noise variance.
  [[nodiscard]] KalmanFilter without_data(double noise) const;

  /// Adds rows that copies of this filter have learned separately. `combined`: natural parameters of this filter plus
  /// the sum of their changes in all copies. `rows`: number of added rows.
  /// `noise`: mean of the noise variances of the copies.
  void merge(const NaturalParameters& combined, double rows, double noise);

  /// Laplace approximation at the means: P = 1 / (1/P + sum c g^2 / s2) over the rows, where c is the curvature of the
  /// loss times the row weight. The means do not change.
  void add_laplace_precisions(const Rows<Scalar>& rows);

  /// Replaces the posterior by that of the same rows, each repeated `repetitions` times, with this noise variance. The
  /// precision that data adds to the prior is multiplied by repetitions * (old variance) / (new variance). The means do
  /// not change.
  void set_noise_variance(double variance, double repetitions);

  /// Stops the updates of the prior in learn(), for rows whose learning is merged later.
  void hold_prior() { holds_prior_ = true; }

  void set_likelihood(const LikelihoodPointer& likelihood) { options_.likelihood = likelihood; }

  [[nodiscard]] Posterior<Scalar> posterior() const {
    Posterior<Scalar> result = Base::posterior();
    result.noise_variance = noise_variance();
    return result;
  }
  [[nodiscard]] Model<Scalar> model() const { return parameters().model(); }
  [[nodiscard]] double noise_variance() const { return learns_prior() ? log_noise_.value() : noise_.value(); }
  /// Number of rows learned.
  [[nodiscard]] double rows() const { return rows_; }
  [[nodiscard]] const KalmanOptions& options() const { return options_; }
  void archive(Archive& archive);

 private:
  /// The negative log-likelihood of a row is its loss divided by this number: s2, or 1 for likelihoods without noise
  /// variance.
  [[nodiscard]] double dispersion() const { return options_.likelihood->has_noise_variance() ? noise_variance() : 1; }

  template <typename Number>
  struct Row;

  /// Updates the noise per feature with a row that has a step. `squared`: squared residual.
  void observe_feature_noise(const Row<Scalar>& row, double squared);

  using Base::added_, Base::groups_, Base::intercept_, Base::intercept_variance_, Base::last_occurrence_,
      Base::learned_prior_, Base::options_, Base::prior_, Base::records_, Base::rows_, Base::signs_, Base::stride_,
      Base::sign_flips_, Base::width_;
  using Base::group_of, Base::mean_record, Base::noise_offset, Base::prior_record, Base::record, Base::scale_offset,
      Base::set_means, Base::set_scales, Base::set_variances, Base::side_of, Base::square_offset,
      Base::draw_random_factor, Base::weight_offset;

  /// The prediction as Scalar, or the intercept if that is not finite.
  [[nodiscard]] Scalar finite_or_intercept(double prediction) const {
    const auto value = static_cast<Scalar>(prediction);
    return std::isfinite(value) ? value : static_cast<Scalar>(intercept_);
  }
  [[nodiscard]] Index gradient_count() const { return options_.shape.left_dim > 0 ? 2 * width_ : width_; }
  template <typename Form>
  void add_laplace_precisions_of(const Rows<Scalar>& rows);
  template <typename Form, bool knows_all, typename Self, typename Number>
  static void collect(Self& self, const Rows<Scalar>& rows, Index i, Row<Number>& row);
  template <typename Form, typename Number>
  void predict_row(Row<Number>& row, std::optional<Scalar> target) const;
  template <typename Form>
  void update_row(const Row<Scalar>& row, const RowStep<Scalar>& step);
  [[nodiscard]] std::optional<RowStep<Scalar>> compute_step(double prediction, double variance, Scalar target,
                                                            Scalar row_weight) const;
  template <typename Form>
  void relearn_rows(const Rows<Scalar>& rows, std::span<const float> feature_rows, double all_rows);
  void update_intercept(const RowStep<Scalar>& step);
  [[nodiscard]] double rows_of_next_prior_update() const;
  void prefetch_row(const Rows<Scalar>& rows, Index i) const;
  template <typename Form>
  void learn_rows(const Rows<Scalar>& rows, std::span<Scalar> predictions);
  /// Calls visit(form) with the RowForm of this filter.
  template <typename Visit>
  void with_form(Visit&& visit) const;
  void forget(const Rows<Scalar>& rows, Index i);
  [[nodiscard]] bool has_diverged(double squared_residual, double expected);
  void reset_variances();

  double innovation_ratio_ = 1;  ///< moving average of r^2 / S; its expectation is 1
  double recent_squares_ = 0;    ///< moving average of r^2
  NoiseTracker noise_;           ///< fixed prior
  LogNoiseTracker log_noise_;    ///< hierarchical prior
  FeatureNoise feature_noise_;   ///< hierarchical prior with group means
  double next_prior_update_;     ///< value of rows_ at the next update of the hierarchical prior
  bool holds_prior_ = false;     ///< see hold_prior(); not archived
};

}  // namespace dyad
