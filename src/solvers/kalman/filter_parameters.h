#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <dyad/model.h>
#include <dyad/shape.h>
#include <dyad/types.h>

#include "base/archive.h"
#include "base/cache_aligned.h"
#include "likelihood/likelihood.h"
#include "linalg/simd.h"
#include "model/posterior.h"
#include "solvers/kalman/hierarchical_prior.h"

namespace dyad {

struct KalmanOptions {
  ModelShape shape;
  LikelihoodPointer likelihood = make_likelihood(Task::regression);
  double square_center = 0;    ///< free diagonal: the square terms are squares_j (x_j^2 - square_center); default 0
  double half_life = 0;        ///< rows after which the variances of the parameters double; 0: no forgetting
  double entries_per_row = 1;  ///< typical number of non-zero entries of a row
  std::uint64_t seed = 1;      ///< of the random initial factors

  /// q = max(100, entries_per_row (rank + 1)): number of parameters that a typical row updates.
  [[nodiscard]] double unknowns_per_row() const;
};

/// Prior variances of the parameters, for features of scale 1. All prior means are 0 except that of the intercept. A
/// filter keeps them fixed, or starts from them and estimates the prior along the stream (HierarchicalPrior).
struct Prior {
  double intercept = 1;
  double weights = 1;
  double squares = 1;
  double factors = 1;
  double intercept_mean = 0;  ///< initial intercept of a filter without data; not archived

  void archive(Archive& archive);
};

/// Natural parameters of the Gaussian posterior: precisions 1/P and precision-weighted means theta/P. The contributions
/// of independent rows are additive.
struct NaturalParameters {
  std::vector<double> precisions;
  std::vector<double> moments;  ///< precision times mean

  /// Adds scale * other.
  void add(double scale, const NaturalParameters& other);
  void archive(Archive& archive, Index size);
};

/// Means and variances of the parameters of one feature. Points into the filter, which the caller keeps alive.
template <typename Scalar>
struct FeaturePosterior {
  const Scalar* factors = nullptr;           ///< rank values
  const Scalar* factor_variances = nullptr;  ///< rank values
  Scalar weight = 0;
  Scalar weight_variance = 0;
  Scalar square = 0;  ///< coefficient of x_j^2; free diagonal only
  Scalar square_variance = 0;
  Scalar scale = 0;  ///< 0: the feature has not occurred in the data
};

/// Means and variances of the parameters of a KalmanFilter. The record of a feature is contiguous and aligned to halves
/// of cache lines, so that it overlaps as few lines as its size allows. A feature of scale s has the prior variances
/// for scale 1 divided by s^2 (squares: by s^4). A scale of 0 means that the feature has not been added.
///
/// With a hierarchical prior, the parameters of feature j of group g are mu_g + d_j. The means and variances of mu_g
/// are part of the state, and the record of a feature contains those of the deviation d_j. Groups without a mean have
/// mu_g = 0. Not thread-safe. Const functions can run concurrently.
template <typename Scalar>
class FilterParameters {
 public:
  /// Starts from the prior, without features.
  FilterParameters(const KalmanOptions& options, const Prior& prior);
  /// Starts from a hierarchical prior with the initial variances `prior`. All features are in group 0.
  FilterParameters(const KalmanOptions& options, const Prior& prior, const FilterGroups& groups);

  /// Sets the prior group of feature j, which must not have been added.
  void set_group(Index j, Index group) { record(j)[group_offset()] = static_cast<Scalar>(group); }

  /// Adds feature j with small random factors. `scale`: typical size of its non-zero values.
  void add_feature(Index j, double scale);

  /// Increases the number of features. New features are at the end of their side and have scale 0.
  void grow(Index dim, Index left_dim);

  /// The means.
  [[nodiscard]] SignedFactors<Scalar> parameters() const;
  /// Means and variances. The variance of the intercept refers to the model with centered squares. `noise_variance` has
  /// its default value.
  [[nodiscard]] Posterior<Scalar> posterior() const;
  [[nodiscard]] FeaturePosterior<Scalar> feature_posterior(Index j) const {
    const Scalar* feature = record(j);
    const Scalar* weight = feature + weight_offset();
    return {feature, feature + width_, weight[0], weight[1], weight[2], weight[3], weight[4]};
  }
  /// +1 or -1 per factor.
  [[nodiscard]] std::vector<Scalar> factor_signs() const {
    return {signs_.begin(), signs_.begin() + options_.shape.rank};
  }
  [[nodiscard]] const Prior& prior_variances() const { return prior_; }
  /// Whether the prior is hierarchical and estimated along the stream.
  [[nodiscard]] bool learns_prior() const { return learned_prior_.has_value(); }
  [[nodiscard]] const FilterGroups& groups() const { return groups_; }
  /// The estimated prior; null if the prior is fixed.
  [[nodiscard]] const std::optional<HierarchicalPrior>& learned_prior() const { return learned_prior_; }
  /// Sums over all features from which the prior is estimated.
  [[nodiscard]] PriorSums prior_sums() const;
  /// Estimates the prior, and replaces the old prior by the new one in the posterior of each feature. Does nothing if
  /// the prior is fixed.
  void update_prior();
  /// Prior group of each feature.
  [[nodiscard]] std::vector<std::int32_t> feature_groups() const;
  [[nodiscard]] bool is_finite() const;
  [[nodiscard]] std::vector<double> scales() const;
  /// In the order of `for_each_parameter`; 0 for parameters that are not estimated.
  [[nodiscard]] NaturalParameters natural_parameters() const;
  /// Sets means and variances. Parameters without a positive precision and a finite mean keep their values.
  void set_natural_parameters(const NaturalParameters& natural);
  /// Number of precisions in natural_parameters().
  [[nodiscard]] Index natural_parameter_count() const;
  /// Throws std::runtime_error if a loaded state is not valid.
  void archive(Archive& archive);

 protected:
  [[nodiscard]] Scalar* record(Index j) { return records_.data() + j * stride_; }
  [[nodiscard]] const Scalar* record(Index j) const { return records_.data() + j * stride_; }
  // Offsets in a record. A variance follows its mean.
  [[nodiscard]] Index weight_offset() const { return 2 * width_; }
  [[nodiscard]] Index square_offset() const { return 2 * width_ + 2; }
  [[nodiscard]] Index scale_offset() const { return 2 * width_ + 4; }
  [[nodiscard]] Index group_offset() const { return 2 * width_ + 5; }
  /// Logarithm of the noise multiplier (FeatureNoise), and its variance; 0 for features without a multiplier.
  [[nodiscard]] Index noise_offset() const { return 2 * width_ + 6; }
  [[nodiscard]] Index group_of(Index j) const { return static_cast<Index>(record(j)[group_offset()]); }
  /// Mean of a group and its variance. The scale is 1 if the group has a mean that is estimated, otherwise 0.
  [[nodiscard]] Scalar* mean_record(Index group) { return group_records_.data() + 2 * group * stride_; }
  [[nodiscard]] const Scalar* mean_record(Index group) const { return group_records_.data() + 2 * group * stride_; }
  /// Deviation of a feature of the group without data: mean 0 and the prior variances.
  [[nodiscard]] const Scalar* prior_record(Index group) const { return mean_record(group) + stride_; }
  /// 0: left side or symmetric, 1: right side.
  [[nodiscard]] Index side_of(Index j) const { return j >= first_right_feature_ ? 1 : 0; }

  static Index first_right_feature(const KalmanOptions& options) {
    return options.shape.left_dim > 0 ? options.shape.left_dim : std::numeric_limits<Index>::max();
  }
  void archive_features(Archive& archive);
  template <typename Self, typename Visit>
  static void for_each_parameter(Self& self, Visit&& visit);
  void set_means(const SignedFactors<Scalar>& means);
  void set_variances(const SignedFactors<Scalar>& variances);
  void set_scales(std::span<const double> scales);
  /// Sets the variances of feature j to the prior variances for its scale.
  void set_variances(Index j, const Prior& prior);
  void draw_random_factor(Index j, Index factor);
  /// Prior mean of factor c of feature j under the hierarchical prior, for the prior variance tau.
  [[nodiscard]] double prior_mean(Index j, Index c, double tau) const;
  /// Hash of the seed and the feature j.
  [[nodiscard]] std::uint64_t hash_of(Index j) const;
  /// Random sign of feature j and factor c, +1 or -1. It depends on the seed only.
  [[nodiscard]] double random_deviate(Index j, Index c) const;
  /// Sets the prior means of the factors to 0. The posterior does not change.
  void remove_prior_means() { relative_prior_mean_ = 0; }
  /// Multiplies the evidence of the data for the parameters of feature j by `share`: the posterior is
  /// prior * (data)^share. The prior mean is 0.
  void scale_evidence(Index j, double share);
  /// The same for the mean of a group.
  void scale_mean_evidence(Index group, double share);
  /// Sets means and variances of feature j to those of the hierarchical prior.
  void set_to_prior(Index j);
  /// Sets the variances of feature j to those of the hierarchical prior.
  void set_prior_variances(Index j);
  /// Copies the estimated prior variances to the prior records.
  void set_prior_records();
  /// Adds the group means to parameters that contain the deviations. Features without data have the mean of their
  /// group. If every row has one feature of each group, the means are absorbed into the intercept and the weights
  /// instead, so that a row without a feature of a group is predicted with the mean of the group.
  void add_group_means(SignedFactors<Scalar>& parameters) const;
  void start_group_means();
  /// Variance of the mean of a group before data.
  [[nodiscard]] double mean_prior_variance(Index place) const;
  /// Calls visit(mean, variance, place) for the parameters of a record that are estimated, with their places in
  /// HierarchicalPrior.
  template <typename Number, typename Visit>
  void for_each_place(Number* record, Visit&& visit) const;
  void archive_groups(Archive& archive);

  KalmanOptions options_;
  Prior prior_;
  FilterGroups groups_;
  std::optional<HierarchicalPrior> learned_prior_;  ///< null: the prior is fixed
  Index first_right_feature_;  ///< first feature of the right side; symmetric: larger than any index
  Index width_;                ///< the rank, rounded up to full SIMD vectors
  Index stride_;               ///< numbers per record, rounded up to halves of cache lines
  /// Per feature: factors, their variances, weight and its variance, square and its variance, scale, prior group,
  /// logarithm of the noise multiplier and its variance.
  CacheAlignedVector<Scalar> records_;
  CacheAlignedVector<Scalar> group_records_;  ///< per group: mean_record(), prior_record(); empty: the prior is fixed
  /// Standard deviation of the prior means of the factors, relative to that of the prior. They are random, because all
  /// factors of 0 are a saddle point. Sensitivity: docs/constants.md.
  double relative_prior_mean_ = 0.15;
  std::vector<std::int32_t> added_;  ///< features that were added, in this order
  std::vector<Scalar> signs_;        ///< +1 or -1 per factor; 0 in the padding
  double intercept_ = 0;             ///< with centered squares
  double intercept_variance_ = 0;    ///< 0: the intercept is not estimated
  double rows_ = 0;                  ///< number of rows learned
  double sign_flips_ = 0;            ///< number of sign flips of weak factors; part of the random seed
  /// With a half-life: value of rows_ at which the variances of each feature were last inflated. Otherwise empty.
  std::vector<double> last_occurrence_;
};

}  // namespace dyad
