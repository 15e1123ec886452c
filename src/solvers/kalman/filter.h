#pragma once

#include <cmath>
#include <optional>
#include <span>

#include "solvers/kalman/filter_parameters.h"
#include "solvers/kalman/noise.h"

namespace dyad {

/// One pass over rows, each seen once, with no step size: for each row the Kalman update of the linearised model
/// (docs/method.md).
template <typename Scalar>
class KalmanFilter : private FilterParameters<Scalar> {
  using Base = FilterParameters<Scalar>;

 public:
  /// From nothing: every feature begins with small random factors. `noise`: the variance to expect around predictions.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, double noise);

  /// From a model whose residuals on fresh rows have this variance, half of which is given to the parameters.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const Model<Scalar>& model,
               std::span<const double> feature_scales, double residual_variance);

  /// From the best fit to these rows, with what they leave open. `spare_rows`: beyond the unknowns, which tell the
  /// noise.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const SignedFactors<Scalar>& fit,
               std::span<const double> feature_scales, double noise, double spare_rows, const Rows<Scalar>& rows);

  /// From a posterior with variances. `rows`: number of rows that it was computed from.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const Posterior<Scalar>& posterior,
               std::span<const double> feature_scales, double rows);

  using Base::begin;
  using Base::bytes;
  using Base::factor_signs;
  using Base::feature_posterior;
  using Base::first_prior;
  using Base::grow;
  using Base::is_finite;
  using Base::natural_parameter_count;
  using Base::natural_parameters;
  using Base::parameters;
  using Base::scales;

  /// Learns the rows one after the other, and writes what each was predicted to be before it was learned.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  /// Regression: the target and the variance around it without the noise. Classes: the log-odds likewise.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> variances) const;

  /// The same filter with the signs of those factors turned that are far weaker than the strongest, which begin again:
  /// a factor with the wrong sign shrinks to nothing and cannot turn by itself. Nothing if there are none.
  [[nodiscard]] std::optional<KalmanFilter> with_weak_factors_turned() const;

  /// What parts of further rows, each learned by a copy of this filter, have made of it together. `rows`: how many
  /// these were; `noise`: the mean of what they say of it.
  void merge(const NaturalParameters& together, double rows, double noise);

  /// The variances that remain behind these rows, which the means fit: 1 / (1/P + sum g^2 / noise).
  void narrow(const Rows<Scalar>& rows);

  /// The posterior of the same rows, each repeated `repetitions` times, if their noise had this variance: what data
  /// adds to the precisions is proportional to the repetitions and inversely proportional to the variance.
  void expect_noise(double variance, double repetitions);

  void set_likelihood(const LikelihoodPointer& likelihood) { options_.likelihood = likelihood; }

  [[nodiscard]] Posterior<Scalar> posterior() const {
    Posterior<Scalar> result = Base::posterior();
    result.noise_variance = noise_variance();
    return result;
  }
  [[nodiscard]] Model<Scalar> model() const { return parameters().model(); }
  [[nodiscard]] double noise_variance() const { return noise_.value(); }
  [[nodiscard]] double rows() const { return rows_; }
  [[nodiscard]] const KalmanOptions& options() const { return options_; }
  void archive(Archive& archive);

 private:
  /// Factor that the likelihood leaves out of its losses.
  [[nodiscard]] double dispersion() const { return options_.likelihood->has_noise_variance() ? noise_.value() : 1; }

  struct Row;
  [[nodiscard]] std::size_t row_width() const;       ///< numbers in each array of a Row
  [[nodiscard]] std::size_t workspace_size() const;  ///< numbers in a Row
  /// theta += P g gain, P -= (P g)^2 shrink, where the slope along factor c of feature j is
  /// (slope[c] - 2 signs[c] A_jc x_j) x_j, without the second part for a tied diagonal and for two sides.
  struct Step {
    const Scalar* slope = nullptr;
    Scalar gain = 0;
    Scalar shrink = 0;
  };

  using Base::intercept_, Base::intercept_variance_, Base::last_seen_, Base::options_, Base::prior_, Base::records_,
      Base::rows_, Base::signs_, Base::stride_, Base::turns_, Base::width_;
  using Base::record, Base::scale_at, Base::set, Base::set_scales, Base::set_variances, Base::side_of, Base::square_at,
      Base::start_at_random, Base::weight_at;

  /// Numbers too large for a prediction count as none.
  [[nodiscard]] Scalar finite(double prediction) const {
    const auto value = static_cast<Scalar>(prediction);
    return std::isfinite(value) ? value : static_cast<Scalar>(intercept_);
  }
  template <bool untied>
  void narrow_all(const Rows<Scalar>& rows);
  template <bool untied>
  void look(const Rows<Scalar>& rows, Index i, Row& row) const;
  void finish_look(Row& row, std::optional<Scalar> target) const;
  template <bool untied, bool moves, bool looks, typename Number>
  void pass(Number* A, Index side, Scalar x, const Step& step, Scalar to_x, Row& to) const;
  [[nodiscard]] std::optional<Step> step_for(const Row& row, Scalar target, Scalar row_weight);
  void move_intercept(const Step& step);
  void fetch_row(const Rows<Scalar>& rows, Index i) const;
  template <bool untied>
  void learn_all(const Rows<Scalar>& rows, std::span<Scalar> predictions);
  void forget(const Rows<Scalar>& rows, Index i);
  [[nodiscard]] bool has_diverged(double squared, double expected);
  void reset_variances();

  double innovation_ratio_ = 1;  ///< recent mean of r^2 / S, which should be 1
  double recent_squares_ = 0;    ///< recent mean of r^2
  NoiseTracker noise_;
  std::vector<Scalar> workspace_;  ///< of learn(): two rows
};

}  // namespace dyad
