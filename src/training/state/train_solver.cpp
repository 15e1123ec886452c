#include "training/state/train_solver.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "training/state/anova_training.h"
#include "training/state/calibration.h"

namespace dyad {
namespace {

/// Largest share of `TrainOptions::memory` for the first rows of a stream, which are buffered for a Gauss-Newton fit.
/// Sensitivity: docs/constants.md.
constexpr double max_buffered_share = 0.25;

MomentOptions moment_options(const TrainSettings& settings, const FeatureMap& map) {
  MomentOptions moment;
  moment.shape = ModelShape::of(map.kind);
  moment.shape.dim = map.dim();
  moment.shape.left_dim = map.left_dim();
  moment.shape.rank = settings.rank;
  moment.shape.diagonal = settings.diagonal.value_or(Diagonal::tied);
  moment.standardization = map.is_measurement() ? Standardization::scale : Standardization::center;
  moment.seed = settings.seed;
  return moment;
}

/// Converts a model to double precision and multiplies all parameters except the intercept by `slope`.
template <typename Scalar>
Model<double> scale_model(Model<Scalar> model, double slope) {
  Model<double> result(0, 0);
  if constexpr (std::is_same_v<Scalar, double>)
    result = std::move(model);
  else
    result = model_cast<double>(model);
  for (auto* parameters : {&result.weights, &result.spectrum, &result.squares})
    for (double& parameter : *parameters) parameter *= slope;
  return result;
}

/// The moment solver. Classes are regression targets -1 and +1, and a calibration converts their scores to log-odds.
template <typename Scalar>
class MomentTraining : public TrainSolver<Scalar> {
 public:
  MomentTraining(const MomentOptions& moment, std::optional<Index> batch, LikelihoodPointer likelihood,
                 ThreadPool& pool)
      : learner_(moment, batch, pool),
        likelihood_(std::move(likelihood)),
        first_step_rows_(batch.value_or(default_batch_rows(moment.shape.rank, moment.shape.dim))) {}

  void learn(const Rows<Scalar>& rows, std::span<double> predictions) override {
    const Index steps = learner_.steps_taken();
    by_constant_.clear();
    for (Index first = 0; first < rows.count();) {
      const Index count = std::min(learner_.rows_until_decision(), rows.count() - first);
      learn_with_one_model(rows.slice(first, count),
                           predictions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
      first += count;
    }
    if (learner_.steps_taken() != steps) calibration_.increase_variances();
  }

  [[nodiscard]] bool predicted_by_constant(std::size_t i) const override { return by_constant_[i]; }

  void grow(Index dim, Index left_dim) override { learner_.grow(dim, left_dim); }

  Model<double> model() override {
    const bool is_classification = !likelihood_->has_identity_link();
    Model<double> model = scale_model(learner_.model(), is_classification ? calibration_.slope() : 1);
    if (is_classification)
      model.intercept = learner_.is_constant() ? log_odds_of_share() : calibration_.log_odds(model.intercept);
    return model;
  }

  void archive(Archive& archive) override {
    archive.group("moment", [&] { learner_.archive(archive); });
    archive.group("calibration", [&] { calibration_.archive(archive); });
    archive.number("moment_rows", rows_);
  }

  [[nodiscard]] MomentLearner<Scalar>* moments() override { return &learner_; }
  [[nodiscard]] bool is_constant() const override { return learner_.is_constant(); }
  [[nodiscard]] std::string constant_reason() const override {
    if (learner_.steps_tried() == 0)
      return fmt::format(
          "the model is the best constant: the first step of the moment solver needs about {} more rows; a lower "
          "`rank` or `batch` needs fewer",
          learner_.rows_until_step() + 1);
    return fmt::format(
        "the model is the best constant: none of {} steps of the moment solver reduced the loss on new rows below that "
        "of the constant",
        learner_.steps_tried());
  }
  [[nodiscard]] std::string plan() const override {
    return fmt::format("moment: batches, with a first step after {} rows", first_step_rows_);
  }
  [[nodiscard]] std::string origin() const override { return "the moment solver, in batches"; }

 private:
  /// Predicts and learns rows for which the model of the learner does not change (see rows_until_decision()).
  void learn_with_one_model(const Rows<Scalar>& rows, std::span<double> predictions) {
    by_constant_.insert(by_constant_.end(), predictions.size(), learner_.steps_taken() == 0);
    residuals_.resize(predictions.size());
    learner_.learn(rows, residuals_);
    rows_ += static_cast<double>(rows.count());
    for (std::size_t i = 0; i < residuals_.size(); ++i) {
      const auto y = static_cast<double>(rows.targets()[i]);
      predictions[i] = y - static_cast<double>(residuals_[i]);
      if (likelihood_->has_identity_link()) continue;
      const double score = predictions[i];
      predictions[i] = calibration_.log_odds(score);
      calibration_.learn(score, likelihood_->observed(y), static_cast<double>(rows.weight(static_cast<Index>(i))));
    }
  }

  /// Log-odds of the share of the positive class in the n rows so far. The share is clipped to
  /// [0.5 / (n + 1), 1 - 0.5 / (n + 1)], so that the log-odds are finite.
  [[nodiscard]] double log_odds_of_share() const {
    const double min_share = 0.5 / (rows_ + 1);
    const double share = std::clamp((1 + learner_.target_mean()) / 2, min_share, 1 - min_share);
    return std::log(share / (1 - share));
  }

  MomentLearner<Scalar> learner_;
  Calibration calibration_;
  LikelihoodPointer likelihood_;
  Index first_step_rows_;  ///< number of rows before the first step
  double rows_ = 0;        ///< number of rows so far
  std::vector<Scalar> residuals_;
  std::vector<bool> by_constant_;  ///< for each row of the last learn(): predicted by a constant
};

/// The Kalman solver, for all values of `Solver` except `moment`.
template <typename Scalar>
class KalmanTraining : public TrainSolver<Scalar> {
 public:
  KalmanTraining(StreamOptions options, ThreadPool& pool) : learner_(std::move(options), pool) {}

  void start(const Rows<Scalar>& rows) { learner_.start(rows); }

  void learn(const Rows<Scalar>& rows, std::span<double> predictions) override {
    predictions_.resize(predictions.size());
    learner_.learn(rows, predictions_);
    std::copy(predictions_.begin(), predictions_.end(), predictions.begin());
  }

  void grow(Index dim, Index left_dim) override { learner_.grow(dim, left_dim); }
  void set_feature_groups(std::span<const std::int32_t> groups) override { learner_.set_feature_groups(groups); }
  void remove_target_range() override { learner_.set_likelihood(make_likelihood(Task::regression)); }

  Model<double> model() override {
    learner_.finish_buffered_start();
    return scale_model(learner_.model(), 1);
  }

  void archive(Archive& archive) override {
    archive.group("kalman", [&] { learner_.archive(archive); });
  }

  [[nodiscard]] const StreamLearner<Scalar>* stream() const override { return &learner_; }
  void promote(KalmanFilter<Scalar> filter, typename StreamLearner<Scalar>::Origin origin) override {
    learner_.promote(std::move(filter), origin);
  }

  [[nodiscard]] std::string plan() const override { return "kalman: " + learner_.plan(); }
  [[nodiscard]] std::string origin() const override { return learner_.origin(); }
  [[nodiscard]] double noise() const override { return std::sqrt(learner_.noise_variance()); }
  [[nodiscard]] Index extra_row_reads() const override { return learner_.extra_row_reads(); }

 private:
  StreamLearner<Scalar> learner_;
  std::vector<Scalar> predictions_;  ///< of the last learn(), before conversion to double
};

/// Whether more than half of the entries of the feature matrix are stored in the block and satisfy `predicate`.
template <typename Scalar, typename Predicate>
bool majority_satisfies(const RowBlock<Scalar>& block, Predicate&& predicate) {
  const auto entries = std::count_if(block.values.begin(), block.values.end(), predicate);
  return 2 * static_cast<double>(entries) > static_cast<double>(block.dim) * static_cast<double>(block.count());
}

}  // namespace

template <typename Scalar>
Diagonal default_diagonal(const FeatureMap& map, const RowBlock<Scalar>& first) {
  if (map.kind != Kind::gfm) return Diagonal::tied;
  const bool has_numbers = first.is_dense ||
                           std::any_of(map.columns().begin(), map.columns().end(),
                                       [](const Column& column) { return column.role == Column::Role::numeric; }) ||
                           majority_satisfies(first, [](Scalar x) { return x != Scalar(0) && x != Scalar(1); });
  return has_numbers ? Diagonal::free : Diagonal::zero;
}

template <typename Scalar>
bool can_use_moments(const RowBlock<Scalar>& first, Task task) {
  return likelihood_of(task).has_identity_link() &&
         (first.is_dense || majority_satisfies(first, [](Scalar) { return true; }));
}

FilterGroups prior_groups(const FeatureMap& map) {
  if (map.is_bilinear()) return {.count = 2, .have_mean = {}, .one_feature_per_row = false};
  FilterGroups groups;
  groups.count = map.group_count();
  if (map.index_groups) {
    groups.have_mean.assign(static_cast<std::size_t>(groups.count), false);
    std::fill(groups.have_mean.begin() + map.first_index_group(), groups.have_mean.end(), true);
    groups.one_feature_per_row = true;
  }
  if (map.layout != Layout::table || map.hash_bits > 0) return groups;
  groups.one_feature_per_row = true;
  for (const Column& column : map.columns()) groups.have_mean.push_back(column.role == Column::Role::categorical);
  groups.have_mean.resize(static_cast<std::size_t>(groups.count));
  return groups;
}

KalmanOptions kalman_options(const TrainSettings& settings, const FeatureMap& map) {
  KalmanOptions kalman = kalman_options(moment_options(settings, map));
  kalman.likelihood = map.target.likelihood(settings.precision == Precision::single_precision);
  kalman.half_life = static_cast<double>(settings.half_life);
  return kalman;
}

StreamOptions stream_options(const TrainOptions& options, const TrainSettings& settings, const FeatureMap& map) {
  StreamOptions stream;
  stream.kalman = kalman_options(settings, map);
  if (settings.uses_moments) stream.moment = moment_options(settings, map);
  stream.batch = settings.batch;
  stream.learns_prior = stream.kalman.shape.linear;
  stream.groups = prior_groups(map);
  stream.prior_scale = options.prior_scale.value_or(1);
  stream.features_are_standardized = map.layout != Layout::sparse && !map.is_measurement();
  // Standardized dense features have mean square 1.
  if (stream.features_are_standardized && map.is_dense()) stream.kalman.square_center = 1;
  stream.buffered_start.memory = settings.solver == Solver::kalman ? 0 : max_buffered_share * options.memory;
  stream.buffered_start.searches_starts = map.is_measurement();
  return stream;
}

template <typename Scalar>
std::unique_ptr<TrainSolver<Scalar>> make_train_solver(const TrainOptions& options, const TrainSettings& settings,
                                                       const FeatureMap& map, ThreadPool& pool,
                                                       const RowBlock<Scalar>* first,
                                                       const std::function<bool()>& interrupted,
                                                       const FitProgress& progress) {
  if (settings.solver == Solver::anova)
    return std::make_unique<AnovaTraining<Scalar>>(settings, map, options.memory, options.data.dataset != nullptr, pool,
                                                   interrupted, progress);
  if (settings.solver == Solver::moment)
    return std::make_unique<MomentTraining<Scalar>>(moment_options(settings, map), settings.batch,
                                                    map.target.likelihood(), pool);
  StreamOptions stream = stream_options(options, settings, map);
  stream.buffered_start.interrupted = interrupted;
  if (first != nullptr) stream.feature_groups = first->new_feature_groups;
  auto training = std::make_unique<KalmanTraining<Scalar>>(std::move(stream), pool);
  if (first != nullptr) training->start(first->view());
  return training;
}

template std::unique_ptr<TrainSolver<float>> make_train_solver(const TrainOptions&, const TrainSettings&,
                                                               const FeatureMap&, ThreadPool&, const RowBlock<float>*,
                                                               const std::function<bool()>&, const FitProgress&);
template std::unique_ptr<TrainSolver<double>> make_train_solver(const TrainOptions&, const TrainSettings&,
                                                                const FeatureMap&, ThreadPool&, const RowBlock<double>*,
                                                                const std::function<bool()>&, const FitProgress&);
template Diagonal default_diagonal(const FeatureMap&, const RowBlock<float>&);
template Diagonal default_diagonal(const FeatureMap&, const RowBlock<double>&);
template bool can_use_moments(const RowBlock<float>&, Task);
template bool can_use_moments(const RowBlock<double>&, Task);

}  // namespace dyad
