#pragma once

#include <cmath>
#include <optional>
#include <span>

#include "solvers/kalman/filter_parameters.h"
#include "solvers/kalman/noise.h"

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
/// Not thread-safe. Const functions can run concurrently.
template <typename Scalar>
class KalmanFilter : private FilterParameters<Scalar> {
  using Base = FilterParameters<Scalar>;

 public:
  /// Starts from the prior, without features. `noise`: initial noise variance.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, double noise);

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
  using Base::bytes;
  using Base::factor_signs;
  using Base::feature_posterior;
  using Base::grow;
  using Base::is_finite;
  using Base::natural_parameter_count;
  using Base::natural_parameters;
  using Base::parameters;
  using Base::prior_variances;
  using Base::scales;

  /// Learns the rows in sequence. Writes the prediction of each row before its update. Throws std::invalid_argument if
  /// rows and filter have different numbers of features.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  /// Writes the linear predictor f of each row and its variance v, without the noise. f is the expected target
  /// (regression) or the log-odds (classification).
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> variances) const;

  /// A copy in which each weak factor (small eigenvalue of M) has the opposite sign, random means and prior variances.
  /// A factor with the wrong sign shrinks to 0 during training and cannot change its sign. std::nullopt if no factor is
  /// weak, or if the signs are fixed (bilinear, positive).
  [[nodiscard]] std::optional<KalmanFilter> with_weak_factors_sign_flipped() const;

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

  void set_likelihood(const LikelihoodPointer& likelihood) { options_.likelihood = likelihood; }

  [[nodiscard]] Posterior<Scalar> posterior() const {
    Posterior<Scalar> result = Base::posterior();
    result.noise_variance = noise_variance();
    return result;
  }
  [[nodiscard]] Model<Scalar> model() const { return parameters().model(); }
  [[nodiscard]] double noise_variance() const { return noise_.value(); }
  /// Number of rows learned.
  [[nodiscard]] double rows() const { return rows_; }
  [[nodiscard]] const KalmanOptions& options() const { return options_; }
  void archive(Archive& archive);

 private:
  /// The negative log-likelihood of a row is its loss divided by this number: s2, or 1 for likelihoods without noise
  /// variance.
  [[nodiscard]] double dispersion() const { return options_.likelihood->has_noise_variance() ? noise_.value() : 1; }

  struct Row;
  [[nodiscard]] std::size_t row_width() const;       ///< numbers in each array of a Row
  [[nodiscard]] std::size_t workspace_size() const;  ///< numbers in all arrays of a Row
  /// theta += P g gain and P -= (P g)^2 innovation_precision. The gradient with respect to A_jc is
  /// (projection_gradient[c] - 2 signs[c] A_jc x_j) x_j; the second term is absent if the diagonal is tied.
  struct Step {
    const Scalar* projection_gradient = nullptr;
    Scalar gain = 0;
    Scalar innovation_precision = 0;
  };

  using Base::intercept_, Base::intercept_variance_, Base::last_occurrence_, Base::options_, Base::prior_,
      Base::records_, Base::rows_, Base::signs_, Base::stride_, Base::sign_flips_, Base::width_;
  using Base::record, Base::scale_offset, Base::set_means, Base::set_scales, Base::set_variances, Base::side_of,
      Base::square_offset, Base::draw_random_factor, Base::weight_offset;

  /// The prediction as Scalar, or the intercept if that is not finite.
  [[nodiscard]] Scalar finite_or_intercept(double prediction) const {
    const auto value = static_cast<Scalar>(prediction);
    return std::isfinite(value) ? value : static_cast<Scalar>(intercept_);
  }
  // `is_untied`: the diagonal of M is zero or free, so that the terms (A_jc x_j)^2 are subtracted.
  template <bool is_untied>
  void add_laplace_precisions_of(const Rows<Scalar>& rows);
  template <bool is_untied>
  void accumulate_row(const Rows<Scalar>& rows, Index i, Row& row) const;
  void finish_row(Row& row, std::optional<Scalar> target) const;
  template <bool is_untied, bool updates, bool accumulates, typename Number>
  void process_feature(Number* A, Index side_offset, Scalar x, const Step& step, Scalar next_x, Row& next) const;
  [[nodiscard]] std::optional<Step> compute_step(const Row& row, Scalar target, Scalar row_weight);
  void update_intercept(const Step& step);
  void prefetch_row(const Rows<Scalar>& rows, Index i) const;
  template <bool is_untied>
  void learn_rows(const Rows<Scalar>& rows, std::span<Scalar> predictions);
  void forget(const Rows<Scalar>& rows, Index i);
  [[nodiscard]] bool has_diverged(double squared_residual, double expected);
  void reset_variances();

  double innovation_ratio_ = 1;  ///< moving average of r^2 / S; its expectation is 1
  double recent_squares_ = 0;    ///< moving average of r^2
  NoiseTracker noise_;
  std::vector<Scalar> workspace_;  ///< two Rows for learn()
};

}  // namespace dyad
