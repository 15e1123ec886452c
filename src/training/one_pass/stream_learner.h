#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "solvers/kalman/phase_search.h"
#include "solvers/moment/moment_learner.h"
#include "solvers/moment/residual_probe.h"
#include "training/one_pass/buffered_start.h"
#include "training/one_pass/data_summary.h"
#include "training/one_pass/feature_scales.h"
#include "training/one_pass/filter_selection.h"

/// \file
/// This folder implements the first pass over the rows: statistics of the first rows (DataSummary, FeatureScales),
/// starts for the filters (BufferedStart), their selection (FilterSelection, StreamLearner), the evidence for
/// classifiers (ClassEvidence) and the public Learner.

namespace dyad {

/// Options of StreamLearner.
struct StreamOptions {
  KalmanOptions kalman;
  std::optional<MomentOptions> moment;    ///< moments beside the filters, for dense features; null: none
  std::optional<Index> batch;             ///< rows in the first batch of the moment solver; null: its default
  bool features_are_independent = false;  ///< mean 0, variance 1, independent: ResidualProbe, not MomentLearner
  bool learns_prior = true;  ///< one random start with a hierarchical prior; false: random starts with fixed priors
  FilterGroups groups;       ///< of the features. `have_mean`: groups that have a mean if they are groups of indicators
  std::vector<std::int32_t> feature_groups;  ///< groups of the first features; all others: 0, or the side (bilinear)
  /// Multiplies the initial variances of the hierarchical prior.
  double prior_scale = 1;
  std::vector<PriorShares> fixed_priors = measurement_prior_shares;  ///< unless learns_prior; at least one
  bool features_are_standardized = true;  ///< features have scale 1; false: scales are estimated (FeatureScales)
  BufferedStartOptions buffered_start;    ///< Gauss-Newton on the first rows; used if there are moments
};

/// One-pass solver without a step size. A Kalman filter with a hierarchical prior, which is estimated along the stream,
/// learns the rows from random factors. Sparse rows need no other filter.
///
/// For dense rows and measurements, FilterSelection compares it with filters from other starts, which have fixed
/// priors: the moment solver, a Gauss-Newton fit to the first rows (BufferedStart), PhaseSearch, random factors with
/// several priors (measurements), and copies of the best filter with flipped signs of weak factors. The moment solver
/// runs beside the filters and adds a start after each of its steps, which may contain eigenvectors of M that the best
/// filter lacks. For independent features, ResidualProbe replaces the moment solver and the sign-flipped copies: its
/// starts are the best filter plus a direction of its residuals. Not thread-safe.
template <typename Scalar>
class StreamLearner {
 public:
  /// Does not own the pool; the caller keeps it alive.
  StreamLearner(StreamOptions options, ThreadPool& pool);

  /// Computes scales and priors from the first rows and adds the candidates with random starts. Does not learn the
  /// rows. learn() calls it with its first rows unless it has been called before.
  void start(const Rows<Scalar>& rows);

  /// Learns the rows. Writes the prediction of each row before it was learned.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  /// Adds features at the end of their side.
  void grow(Index dim, Index left_dim);

  /// Sets the prior groups of the last features, which have no data.
  void set_feature_groups(std::span<const std::int32_t> groups);

  /// Replaces the likelihood of all candidates.
  void set_likelihood(const LikelihoodPointer& likelihood);

  /// Fits the buffered rows, if there are enough, and ends the buffering.
  void finish_buffered_start();

  using Origin = typename FilterSelection<Scalar>::Origin;

  /// Replaces all candidates by a filter.
  void promote(KalmanFilter<Scalar> filter, Origin origin = Origin::multi_pass);

  [[nodiscard]] Model<Scalar> model() const { return selection_.best_filter().model(); }
  [[nodiscard]] const StreamOptions& options() const { return options_; }
  [[nodiscard]] const KalmanFilter<Scalar>& filter() const { return selection_.best_filter(); }
  [[nodiscard]] double noise_variance() const { return selection_.best_filter().noise_variance(); }
  /// Number of buffered rows in the last fit that gave a start; 0: no such fit in this run.
  [[nodiscard]] Index fitted_rows() const { return fitted_rows_; }
  /// Whether the model fits the buffered rows and all later rows up to rounding.
  [[nodiscard]] bool fits_exactly() const { return exact_rows_ > 0; }
  /// Diagnosis of the fit to the buffered rows; null if there was none (see BufferedStart::diagnosis).
  [[nodiscard]] const std::optional<FitDiagnosis>& diagnosis() const { return buffered_start_.diagnosis(); }
  /// Number of features that are omitted because powers of their values overflow or underflow.
  [[nodiscard]] Index omitted_features() const { return scales_.omitted(); }
  /// Number of rows read by the fits to buffered rows, summed over passes.
  [[nodiscard]] Index extra_row_reads() const { return buffered_start_.extra_row_reads(); }

  [[nodiscard]] std::string plan() const;    ///< one line: the starts that are used
  [[nodiscard]] std::string origin() const;  ///< one line: the start of the best candidate

  /// Saves or loads the state, without the buffered rows. Saving drops candidates that are not finite.
  void archive(Archive& archive);

 private:
  /// A filter with the hierarchical prior of the options.
  [[nodiscard]] KalmanFilter<Scalar> make_hierarchical_filter(const DataSummary& summary, const Rows<Scalar>& rows);
  /// The groups of the options, without means of groups that are not groups of indicators in these rows, and with
  /// `one_feature_per_row` only if it holds for these rows.
  [[nodiscard]] FilterGroups indicator_groups(const Rows<Scalar>& rows) const;
  /// Group of feature j unless set_feature_groups() was called for it.
  [[nodiscard]] Index default_group(Index j) const;
  void add_new_features(const Rows<Scalar>& rows);
  void update_target_bounds(const Rows<Scalar>& rows);
  void update_search(const Rows<Scalar>& rows);
  void update_moments(const Rows<Scalar>& rows, std::span<const Scalar> predictions);
  void update_probe(const Rows<Scalar>& rows, std::span<const Scalar> predictions);
  void add_moment_start(KalmanFilter<Scalar> filter);
  void add(std::optional<typename BufferedStart<Scalar>::Start> start);
  Index predict_consistent_rows(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;
  void withdraw_exact_start(const Rows<Scalar>& inconsistent_row);
  /// Whether other starts than the random one are used: for measurements and dense rows.
  [[nodiscard]] bool compares_starts() const { return !options_.learns_prior || options_.moment; }
  void update_selection();
  void add_sign_flipped_copy();

  StreamOptions options_;
  ThreadPool& pool_;
  FilterSelection<Scalar> selection_;
  FeatureScales scales_;
  BufferedStart<Scalar> buffered_start_;
  std::optional<MomentLearner<Scalar>> moments_;
  std::optional<ResidualProbe<Scalar>> probe_;
  std::optional<PhaseSearch<Scalar>> search_;
  Prior prior_;  ///< fixed prior of the starts that are not random
  bool has_started_ = false;
  Index rows_ = 0;            ///< number of rows so far
  Index next_selection_ = 0;  ///< number of rows at the next update of the selection
  Index next_sign_flip_ = 0;  ///< number of rows from which a sign-flipped copy is added
  Index fitted_rows_ = 0;     ///< value of fitted_rows()
  Index exact_rows_ = 0;      ///< number of buffered rows of an exact fit; 0: none. Later rows that the fit predicts up
                              ///< to rounding are not learned.
  double min_target_ = 0;     ///< smallest target so far
  double max_target_ = 0;     ///< largest target so far
  Index moment_steps_ = 0;    ///< steps of the moment solver so far
  double moment_squares_ = 0;   ///< weighted squared residuals of the moment solver since its last step
  double best_squares_ = 0;     ///< weighted squared residuals of the best candidate on the same rows
  double compared_weight_ = 0;  ///< sum of the weights of these rows
};

/// Filter options with the shape and seed of the moment solver.
KalmanOptions kalman_options(const MomentOptions& moment);

}  // namespace dyad
