#pragma once

#include <vector>

#include "model/signed_factors.h"
#include "solvers/sampling/gibbs_sampler.h"

namespace dyad {

/// Running average of samples as one model, in O(size (features + groups)) memory.
///
/// The prediction is linear in (b, w, u, M), so that the average of the predictions is that of the averaged
/// parameters. M = 1/S sum_s V_s V_s'/2 is kept as F F' with at most 2 size columns: the columns of each sample are
/// appended, and a full F is cut to the `size` leading directions of F F' (frequent directions without shrinkage, see
/// Liberty 2013). The rows of F are multiplied by sqrt(n_j + 1), where n_j is the number of rows of the feature, so
/// that errors are weighted by the frequency of the features.
///
/// The average has `groups` further features, which have the mean parameters of their group. They represent features
/// that do not occur in training.
class SampleAverage {
 public:
  /// Number of columns after a cut. The averages of 64 and of all columns differ by less than 0.1% of the loss of
  /// ratings and 0.5% of classes (docs/method.md). Sensitivity: docs/constants.md.
  static constexpr Index default_size = 64;

  explicit SampleAverage(const GibbsSampler& sampler, Index size = default_size);

  /// Adds the current sample.
  void add(const GibbsSampler& sampler);

  [[nodiscard]] Index samples() const { return samples_; }
  /// The averaged model with M cut to `rank`. Features: those of the columns, then one per group. Bilinear models: the
  /// factors of both sides; the features of the groups are excluded.
  [[nodiscard]] SignedFactors<double> model(Index rank);
  /// Number of columns that are stored: the largest rank.
  [[nodiscard]] Index columns();

  /// Mean and standard deviation over the samples of the logarithms of the noise variances 1/s_j, by feature, then by
  /// group: the expectation over the prior of a feature of the group.
  struct Noise {
    double log_variance = 0;  ///< mean of -log alpha
    std::vector<double> log_factors;
    std::vector<double> deviations;
  };
  [[nodiscard]] Noise noise() const;

 private:
  void cut();

  ModelShape shape_;
  Index size_;
  Index groups_;
  Index samples_ = 0;
  Index used_columns_ = 0;
  bool is_cut_ = false;        ///< the columns are orthogonal and at most `size`
  std::vector<float> scales_;  ///< sqrt(n_j + 1)
  RowMajorMatrix<float> F_;    ///< scaled; unnormalized sum over the samples
  double intercept_ = 0;       ///< sums over the samples, as the members below
  Vector<double> weights_;
  Vector<double> squares_;
  double log_noise_ = 0;
  Vector<double> log_factors_;
  Vector<double> squared_log_factors_;
};

}  // namespace dyad
