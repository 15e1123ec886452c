#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <dyad/data.h>
#include <dyad/model.h>
#include <dyad/moment.h>

#include "base/archive.h"
#include "kalman/lanes.h"
#include "kalman/noise.h"
#include "model/signed_factors.h"

namespace dyad {

struct KalmanOptions {
  Index dim = 0;
  Index left_dim = 0;  ///< as in Model
  Index rank = 8;
  bool linear = true;
  bool intercept = true;
  bool positive = false;   ///< all signs are +
  bool amplitude = false;  ///< rank 1, positive, measurements only: steps aim at sqrt(y) = |a'x|
  Diagonal diagonal = Diagonal::tied;
  Task task = Task::regression;
  double square_centre = 0;                               ///< free diagonal: what x_j^2 is measured from
  double low = -std::numeric_limits<double>::infinity();  ///< targets here may be anything below
  double high = std::numeric_limits<double>::infinity();  ///< targets here may be anything above
  double half_life = 0;                                   ///< rows after which data counts half; 0: it always counts
  double entries = 1;                                     ///< non-zeros in a usual row
  std::uint64_t seed = 1;

  /// Numbers that a usual row moves.
  [[nodiscard]] double unknowns_of_row() const;
};

/// Variances of the parameters before any data.
struct Prior {
  double intercept = 1;
  double weights = 1;
  double squares = 1;
  double factors = 1;
};

/// One pass over rows, each seen once, with no step size: a mean and a variance for each parameter, and for each row
/// the Kalman update of the linearised model (docs/method.md). Features have a scale, by which the prior is measured;
/// one without is not there yet.
template <typename Scalar>
class KalmanFilter {
 public:
  /// From nothing: every feature begins with small random factors. `noise`: the variance to expect around predictions.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, double noise);

  /// From a model whose residuals on fresh rows have this variance, half of which is given to the parameters.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const Model<Scalar>& model,
               std::span<const double> scales, double residual_variance);

  /// From the best fit to these rows, with what they leave open.
  KalmanFilter(const KalmanOptions& options, const Prior& prior, const SignedFactors<Scalar>& fit,
               std::span<const double> scales, double noise, const Rows<Scalar>& rows);

  /// Feature j is there from now on.
  void begin(Index j, double scale);

  /// Learns the rows one after the other, and writes what each was predicted to be before it was learned.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  /// Regression: the target and the variance around it without the noise. Classes: the log-odds likewise.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions, std::span<Scalar> variances) const;

  /// Room for more features at the end of their side.
  void grow(Index dim, Index left_dim);

  /// The same filter with the signs of those factors turned that are far weaker than the strongest, which begin again:
  /// a factor with the wrong sign shrinks to nothing and cannot turn by itself. Nothing if there are none.
  [[nodiscard]] std::optional<KalmanFilter> with_weak_factors_turned() const;

  void set_range(double low, double high) {
    options_.low = low;
    options_.high = high;
  }

  [[nodiscard]] Model<Scalar> model() const;
  [[nodiscard]] double noise_variance() const { return noise_.value(); }
  [[nodiscard]] const KalmanOptions& options() const { return options_; }
  void archive(Archive& archive);

 private:
  struct Row;
  /// theta += P g gain, P -= (P g)^2 shrink, where the slope along factor c of feature j is
  /// (slope[c] - 2 signs[c] A_jc x_j) x_j, without the second part for a tied diagonal and for two sides.
  struct Step {
    const Scalar* slope = nullptr;
    Scalar gain = 0;
    Scalar shrink = 0;
  };

  [[nodiscard]] Scalar* record(Index j) { return records_.data() + j * stride_; }
  [[nodiscard]] const Scalar* record(Index j) const { return records_.data() + j * stride_; }
  [[nodiscard]] Index weight_at() const { return 2 * width_; }
  [[nodiscard]] Index square_at() const { return 2 * width_ + 2; }
  [[nodiscard]] Index scale_at() const { return 2 * width_ + 4; }
  [[nodiscard]] Index side_of(Index j) const { return options_.left_dim > 0 && j >= options_.left_dim ? 1 : 0; }
  void set(const SignedFactors<Scalar>& start);
  void set_scales(std::span<const double> scales);
  [[nodiscard]] SignedFactors<Scalar> parameters() const;
  void set_variances(Index j, const Prior& prior);
  void start_at_random(Index j, Index factor);
  template <bool untied>
  void narrow(const Rows<Scalar>& rows);
  template <bool untied>
  void look(const Rows<Scalar>& rows, Index i, Row& row) const;
  void finish_look(Row& row, std::optional<Scalar> target) const;
  template <bool untied, bool moves, bool looks>
  void pass(Index j, Scalar x, const Step& step, Scalar to_x, Row& to);
  [[nodiscard]] std::optional<Step> step_for(const Row& row, Scalar target, Scalar row_weight);
  void move_intercept(const Step& step);
  template <bool untied>
  void learn_all(const Rows<Scalar>& rows, std::span<Scalar> predictions);
  void forget(const Rows<Scalar>& rows, Index i);
  [[nodiscard]] bool is_lost(double squared, double expected);
  void begin_again();

  KalmanOptions options_;
  Prior prior_;
  Index width_;                                        ///< the rank, rounded up to full vectors
  Index stride_;                                       ///< numbers per feature
  std::vector<Scalar, CacheAligned<Scalar>> records_;  ///< per feature: factors, their variances, weight and its
                                                       ///< variance, square and its variance, scale
  std::vector<Scalar> signs_;                          ///< 0 beyond the rank
  double intercept_ = 0;
  double intercept_variance_ = 0;
  double rows_ = 0;
  double turns_ = 0;
  double surprise_ = 1;            ///< recent mean of r^2 / S, which should be 1
  double recent_squares_ = 0;      ///< recent mean of r^2
  std::vector<double> last_seen_;  ///< with a half-life: the row at which each feature was last brought up to date
  NoiseTracker noise_;
};

}  // namespace dyad
