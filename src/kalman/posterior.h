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
#include "base/lanes.h"
#include "likelihood/likelihood.h"
#include "model/beliefs.h"

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

/// Precisions of all parameters, and precisions times means: what independent parts of the rows say of them adds.
struct Naturals {
  std::vector<double> precisions;
  std::vector<double> moments;

  void add(double scale, const Naturals& other);
  void archive(Archive& archive, Index size);
};

/// Means and variances of the parameters of one feature. Does not own the factors.
template <typename Scalar>
struct FeatureBelief {
  const Scalar* factors = nullptr;
  const Scalar* factor_variances = nullptr;
  Scalar weight = 0;
  Scalar weight_variance = 0;
  Scalar square = 0;  ///< free diagonal
  Scalar square_variance = 0;
  Scalar scale = 0;  ///< 0: no row has shown the feature
};

/// A mean and a variance for every parameter, laid out so that the numbers of one feature fill cache lines of their
/// own. Features have a scale, by which the prior is measured; one without is not there yet.
template <typename Scalar>
class Posterior {
 public:
  /// The prior, with no feature there.
  Posterior(const KalmanOptions& options, const Prior& prior);

  /// Feature j is there from now on, with small random factors.
  void begin(Index j, double scale);

  /// Room for more features at the end of their side.
  void grow(Index dim, Index left_dim);

  [[nodiscard]] SignedFactors<Scalar> parameters() const;
  /// With their variances; that of the intercept is what it is for squares measured from their centre.
  [[nodiscard]] Beliefs<Scalar> beliefs() const;
  [[nodiscard]] FeatureBelief<Scalar> belief_of(Index j) const {
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
  /// In an order of their own; 0 for parameters that are not learned.
  [[nodiscard]] Naturals naturals() const;
  /// Parameters that these say nothing about, or impossible things, stay as they are.
  void take(const Naturals& naturals);
  [[nodiscard]] Index naturals_count() const;
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
