#pragma once

#include <optional>
#include <vector>

#include <dyad/learner.h>

#include "base/archive.h"
#include "solvers/kalman/unknown_features.h"
#include "training/one_pass/class_evidence.h"
#include "training/one_pass/stream_learner.h"

namespace dyad {

/// Options of the moment solver of a learner.
MomentOptions moment_options(const LearnerOptions& options);

/// Options of the stream learner of a learner, without moments. Throws std::invalid_argument for invalid options.
StreamOptions stream_options(const LearnerOptions& options);

/// State of a Learner. The first `min_start_rows` rows are buffered and predicted by a constant; they determine the
/// solver options. A StreamLearner then learns them and all later rows.
template <typename Scalar>
struct Learner<Scalar>::Implementation {
  /// Number of rows from which scales, priors and the density of the features are estimated. Sensitivity:
  /// docs/constants.md.
  static constexpr Index min_start_rows = 50;

  explicit Implementation(const LearnerOptions& given)
      : options(given), pool(given.threads), stream(stream_options(given)) {}

  /// Creates the stream learner from the buffered rows, and learns them.
  void start() {
    const Rows<Scalar> first = first_rows.view(options.shape.dim);
    double entries = 0;
    for (Index i = 0; i < first.count(); ++i)
      first.for_each_entry(i, [&](Index, Scalar x) { entries += x != 0 ? 1 : 0; });
    // Moments need dense features: more than half of the values are not 0.
    const bool is_dense = 2 * entries > static_cast<double>(options.shape.dim) * static_cast<double>(first.count());
    if (is_dense && likelihood().has_identity_link()) stream.moment = moment_options(options);
    learner.emplace(stream, pool);
    std::vector<Scalar> values(static_cast<std::size_t>(first.count()));
    learner->learn(first, values);
    if (likelihood().is_classification()) apply_evidence(first, values);
    first_rows = RowCache<Scalar>();
  }

  /// Adds rows that were predicted before they were learned to the evidence. `values`: their log-odds; replaced by the
  /// constant for rows at which the evidence of earlier rows was not sufficient.
  void apply_evidence(const Rows<Scalar>& block, std::span<Scalar> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool is_positive = block.targets()[i] > 0;
      const auto value = static_cast<double>(values[i]);
      if (is_constant()) values[i] = static_cast<Scalar>(evidence.log_odds());
      evidence.add(is_positive, likelihood().score(is_positive ? 1 : 0, likelihood().mean(value)),
                   static_cast<double>(block.weight(static_cast<Index>(i))));
    }
  }

  /// Whether predictions are the constant probability.
  [[nodiscard]] bool is_constant() const { return likelihood().is_classification() && !evidence.is_sufficient(); }

  /// Predictions and variances of the rows. `unseen`: as in Learner::predict().
  void predict(const Rows<Scalar>& block, std::span<Scalar> predictions, std::span<Scalar> variances,
               std::span<const Index> unseen, bool needs_variances) const {
    const KalmanFilter<Scalar>& filter = learner->filter();
    if (!filter.learns_prior()) {
      filter.predict(block, predictions, variances);
      if (needs_variances) add_unknown_features(block, variances, unseen);
      return;
    }
    predict_with_unknown_features<Scalar>(
        filter, block,
        [&](Index row, std::vector<Index>& groups) {
          if (!unseen.empty()) groups.assign(static_cast<std::size_t>(unseen[static_cast<std::size_t>(row)]), 0);
        },
        predictions, variances);
    for (std::size_t i = 0; i < predictions.size(); ++i)
      predictions[i] = static_cast<Scalar>(
          likelihood().posterior_predictor(static_cast<double>(predictions[i]), static_cast<double>(variances[i])));
  }

  /// Adds the variance of features without data to `variances`. `unseen`: as in Learner::predict().
  void add_unknown_features(const Rows<Scalar>& block, std::span<Scalar> variances,
                            std::span<const Index> unseen) const {
    const KalmanFilter<Scalar>& filter = learner->filter();
    std::optional<UnknownFeatures> unknown;
    for (std::size_t i = 0; i < variances.size(); ++i) {
      const auto row = static_cast<Index>(i);
      const std::vector<Index> missing(
          unseen.empty() ? 0 : static_cast<std::size_t>(unseen[i]));  // one group index per unseen feature; all are 0
      bool has_unknown = !missing.empty();
      block.for_each_entry(row, [&](Index j, Scalar x) {
        has_unknown = has_unknown || (x != 0 && !(filter.feature_posterior(j).scale > 0));
      });
      if (!has_unknown) continue;
      if (!unknown) unknown.emplace(filter);
      variances[i] += static_cast<Scalar>(unknown->variance(filter, block, row, missing));
    }
  }

  /// Expected target for a linear predictor, within the range of the targets.
  [[nodiscard]] Scalar as_prediction(double value) const {
    return static_cast<Scalar>(likelihood().mean(likelihood().support().clamp(value)));
  }

  [[nodiscard]] const Likelihood& likelihood() const { return *stream.kalman.likelihood; }

  /// Linear predictor of the constant model.
  [[nodiscard]] double constant() const {
    if (learner) return evidence.log_odds();
    return likelihood().link(likelihood().constant_mean(sum, static_cast<double>(rows)));
  }

  /// Saves or loads everything but the options. Defined in learner_archive.cpp.
  void archive(Archive& archive);
  /// Saves or loads `first_rows`.
  void archive_first_rows(Archive& archive);

  LearnerOptions options;
  ThreadPool pool;
  StreamOptions stream;                          ///< options of `learner`
  std::optional<StreamLearner<Scalar>> learner;  ///< null before `min_start_rows` rows
  RowCache<Scalar> first_rows;                   ///< rows before the stream learner exists
  Index rows = 0;                                ///< number of rows learned
  double sum = 0;  ///< sum of the targets, or number of positive targets, of the rows before the stream learner exists
  double squares = 0;      ///< sum of the squared targets of these rows
  ClassEvidence evidence;  ///< classification: evidence of all rows that the stream learner has learned
};

}  // namespace dyad
