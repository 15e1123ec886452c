#pragma once

#include <span>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

struct AnovaOptions;

/// Rows of the least-squares problem: targets or working responses z with weights.
struct WorkingRows {
  std::vector<double> z;
  std::vector<double> weights;  ///< empty: all 1
  double total_weight = 0;
  double mean = 0;  ///< weighted mean of z

  void update_mean();
  [[nodiscard]] double weight(std::size_t i) const { return weights.empty() ? 1 : weights[i]; }
};

/// Relation of the targets to the linear predictor f: the identity, censored at the ends of a range, or the log-odds of
/// classes, whose positive class has positive targets.
struct ResponseLink {
  explicit ResponseLink(const AnovaOptions& options);

  /// Sets working responses and weights of the rows at the values of f. `weights`: repetition counts; empty: 1.
  /// `keeps_weights` (classes): `rows.weights` stay those of the last call, and so does the Gram matrix. The gradient
  /// of the log-likelihood is exact also with such weights: W (z - f) = y - p.
  void linearize(std::span<const double> targets, std::span<const double> weights, std::span<const double> predictor,
                 WorkingRows& rows, bool keeps_weights = false) const;
  [[nodiscard]] bool is_censored(double target) const { return target <= low || target >= high; }

  bool is_classification;
  double low;   ///< targets at or below are censored
  double high;  ///< targets at or above are censored
};

/// Working responses and weights of the least-squares problem: the targets; targets with censored ends replaced by the
/// prediction where it lies beyond the end; or those of iteratively reweighted least squares for classes.
class Response {
 public:
  Response(std::span<const double> targets, std::span<const double> weights, const AnovaOptions& options);

  /// Updates the responses at the values of the linear predictor. The first call leaves censored targets unchanged.
  /// `keeps_weights`: as in ResponseLink::linearize().
  void update(std::span<const double> predictor, bool keeps_weights = false);
  /// Multiplies the repetition counts by precisions, which are scaled to a mean of 1 (regression).
  void set_precisions(std::span<const double> precisions);
  [[nodiscard]] const WorkingRows& rows() const { return rows_; }
  /// Log-likelihood of classes at the values of the linear predictor.
  [[nodiscard]] double log_likelihood(std::span<const double> predictor) const;

  [[nodiscard]] double repetitions(std::size_t i) const { return weights_.empty() ? 1 : weights_[i]; }
  [[nodiscard]] double total_repetitions() const { return total_repetitions_; }
  /// Weight of one repetition of a row (regression).
  [[nodiscard]] double precision(std::size_t i) const { return precisions_.empty() ? 1 : precisions_[i]; }
  [[nodiscard]] bool is_censored() const { return is_censored_; }
  /// Value of the linear predictor before the first fit: 0, or the log-odds of the positive class.
  [[nodiscard]] std::vector<double> start_predictor() const;
  /// Scale of the prior variances: the variance of the target, or that of log-odds.
  [[nodiscard]] double prior_variance() const { return prior_variance_; }
  [[nodiscard]] double start_noise_variance() const { return link_.is_classification ? 1 : 0.5 * prior_variance_; }

 private:
  std::vector<double> targets_;
  std::vector<double> weights_;     ///< repetition counts; empty: 1
  std::vector<double> precisions_;  ///< weights of one repetition, with mean 1; empty: 1
  ResponseLink link_;
  bool is_censored_ = false;
  bool has_fit_ = false;  ///< update() was called with a fitted predictor
  double prior_variance_ = 1;
  double total_repetitions_ = 0;
  WorkingRows rows_;
};

}  // namespace dyad
