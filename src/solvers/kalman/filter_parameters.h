#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <dyad/data.h>
#include <dyad/model.h>
#include <dyad/shape.h>

#include "base/archive.h"
#include "base/cache_aligned.h"
#include "likelihood/likelihood.h"
#include "linalg/simd.h"
#include "model/posterior.h"

namespace dyad {

struct KalmanOptions {
  ModelShape shape;
  LikelihoodPointer likelihood = make_likelihood(Task::regression);
  double square_centre = 0;  ///< free diagonal: what x_j^2 is measured from
  double half_life = 0;      ///< rows after which data counts half; 0: it always counts
  double entries = 1;        ///< non-zeros in a usual row
  std::uint64_t seed = 1;

  /// Numbers that a usual row moves.
  [[nodiscard]] double unknowns_of_row() const;
};

/// Variances of the parameters before any data. All means are 0 but that of the intercept.
struct Prior {
  double intercept = 1;
  double weights = 1;
  double squares = 1;
  double factors = 1;
  double intercept_mean = 0;  ///< of a start from nothing; not saved

  void archive(Archive& archive);
};

/// Natural parameters of the Gaussian posterior: precisions, and precisions times means. Those of independent rows are
/// additive.
struct NaturalParameters {
  std::vector<double> precisions;
  std::vector<double> moments;

  void add(double scale, const NaturalParameters& other);
  void archive(Archive& archive, Index size);
};

/// Means and variances of the parameters of one feature. Does not own the factors.
template <typename Scalar>
struct FeaturePosterior {
  const Scalar* factors = nullptr;
  const Scalar* factor_variances = nullptr;
  Scalar weight = 0;
  Scalar weight_variance = 0;
  Scalar square = 0;  ///< free diagonal
  Scalar square_variance = 0;
  Scalar scale = 0;  ///< 0: no row has shown the feature
};

/// Parameters and variances of the filter. The numbers of one feature are stored together in cache lines of their own.
/// The prior of a feature is relative to its scale; a scale of 0 means that the feature has not been added.
template <typename Scalar>
class FilterParameters {
 public:
  /// The prior, without features.
  FilterParameters(const KalmanOptions& options, const Prior& prior);

  /// Adds feature j with small random factors.
  void begin(Index j, double scale);

  /// Makes room for more features at the end of their side.
  void grow(Index dim, Index left_dim);

  [[nodiscard]] SignedFactors<Scalar> parameters() const;
  /// Means and variances. The variance of the intercept refers to centred squares. Without the noise variance.
  [[nodiscard]] Posterior<Scalar> posterior() const;
  [[nodiscard]] FeaturePosterior<Scalar> feature_posterior(Index j) const {
    const Scalar* own = record(j);
    const Scalar* weight = own + weight_at();
    return {own, own + width_, weight[0], weight[1], weight[2], weight[3], weight[4]};
  }
  /// Of the factors.
  [[nodiscard]] std::vector<Scalar> factor_signs() const {
    return {signs_.begin(), signs_.begin() + options_.shape.rank};
  }
  [[nodiscard]] const Prior& first_prior() const { return prior_; }
  [[nodiscard]] bool is_finite() const;
  [[nodiscard]] std::vector<double> scales() const;
  /// In the order of `for_each_parameter`; 0 for parameters that are not learned.
  [[nodiscard]] NaturalParameters natural_parameters() const;
  /// Parameters without a positive precision and a finite mean keep their values.
  void take(const NaturalParameters& natural);
  [[nodiscard]] Index natural_parameter_count() const;
  [[nodiscard]] double bytes() const { return static_cast<double>(records_.size() * sizeof(Scalar)); }
  void archive(Archive& archive);

 protected:
  [[nodiscard]] Scalar* record(Index j) { return records_.data() + j * stride_; }
  [[nodiscard]] const Scalar* record(Index j) const { return records_.data() + j * stride_; }
  [[nodiscard]] Index weight_at() const { return 2 * width_; }
  [[nodiscard]] Index square_at() const { return 2 * width_ + 2; }
  [[nodiscard]] Index scale_at() const { return 2 * width_ + 4; }
  [[nodiscard]] Index side_of(Index j) const { return j >= right_first_ ? 1 : 0; }

  static Index right_first_of(const KalmanOptions& options) {
    return options.shape.left_dim > 0 ? options.shape.left_dim : std::numeric_limits<Index>::max();
  }
  void archive_features(Archive& archive);
  template <typename Self, typename Visit>
  static void for_each_parameter(Self& self, Visit&& visit);
  void set(const SignedFactors<Scalar>& means);
  void set_variances(const SignedFactors<Scalar>& variances);
  void set_scales(std::span<const double> all);
  void set_variances(Index j, const Prior& prior);
  void start_at_random(Index j, Index factor);

  KalmanOptions options_;
  Prior prior_;
  Index right_first_;          ///< first feature of the right side; symmetric: beyond all features
  Index width_;                ///< the rank, rounded up to full vectors
  Index stride_;               ///< numbers per feature
  BigVector<Scalar> records_;  ///< per feature: factors, their variances, weight and its
                               ///< variance, square and its variance, scale
  std::vector<Scalar> signs_;  ///< 0 beyond the rank
  double intercept_ = 0;
  double intercept_variance_ = 0;
  double rows_ = 0;                ///< learned so far
  double turns_ = 0;               ///< how often weak factors were turned
  std::vector<double> last_seen_;  ///< with a half-life: the row at which each feature was last brought up to date
};

}  // namespace dyad
