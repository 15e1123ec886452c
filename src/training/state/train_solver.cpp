#include "training/state/train_solver.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "training/state/calibration.h"

namespace dyad {
namespace {

MomentOptions moment_options(const TrainSettings& settings, const FeatureMap& map) {
  MomentOptions moment;
  moment.shape = ModelShape::of(map.kind);
  moment.shape.dim = map.dim();
  moment.shape.left_dim = map.left_dim();
  moment.shape.rank = settings.rank;
  moment.shape.diagonal = settings.diagonal.value_or(Diagonal::tied);
  moment.standardise = map.is_measurement() ? Standardise::scale : Standardise::centre;
  moment.seed = settings.seed;
  return moment;
}

template <typename Scalar>
Model<double> in_double(const Model<Scalar>& model, double stretch) {
  Model<double> result = model_cast<double>(model);
  for (auto* numbers : {&result.weights, &result.spectrum, &result.squares})
    for (double& number : *numbers) number *= stretch;
  return result;
}

/// Moments; classes are learned as -1 and +1, and a calibration makes log-odds of the scores.
template <typename Scalar>
class MomentTraining : public TrainSolver<Scalar> {
 public:
  MomentTraining(const MomentOptions& moment, std::optional<Index> batch, LikelihoodPointer likelihood,
                 ThreadPool& pool)
      : learner_(moment, batch, pool),
        likelihood_(std::move(likelihood)),
        first_step_(batch.value_or(usual_batch(moment.shape.rank, moment.shape.dim))) {}

  void learn(const Rows<Scalar>& rows, std::span<double> predictions) override {
    const Index steps = learner_.steps_taken();
    by_constant_.clear();
    for (Index first = 0; first < rows.count();) {
      const Index count = std::min(learner_.rows_until_decision(), rows.count() - first);
      learn_with_one_model(rows.slice(first, count),
                           predictions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
      first += count;
    }
    if (learner_.steps_taken() != steps) calibration_.loosen();
  }

  [[nodiscard]] bool is_by_constant(std::size_t i) const override { return by_constant_[i]; }

  void grow(Index dim, Index left_dim) override { learner_.grow(dim, left_dim); }

  Model<double> model() override {
    const bool classes = !likelihood_->has_identity_link();
    Model<double> model = in_double(learner_.model(), classes ? calibration_.stretch() : 1);
    if (classes)
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
  [[nodiscard]] std::string why_constant() const override {
    if (learner_.steps_tried() == 0)
      return fmt::format(
          "the moments carry no signal yet: a first step needs about {} more rows, so the model is the best constant; "
          "a "
          "lower --rank or --batch needs fewer",
          learner_.rows_until_step() + 1);
    return fmt::format(
        "the moments carry no signal: none of {} steps made predictions of fresh rows better than the best constant, "
        "which is the model now",
        learner_.steps_tried());
  }
  [[nodiscard]] std::string plan() const override {
    return fmt::format("moment: batches, with a first step after {} rows", first_step_);
  }
  [[nodiscard]] std::string origin() const override { return "by the moments of batches"; }

 private:
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

  /// Of the positive class among all rows so far, neither of which is taken for impossible.
  [[nodiscard]] double log_odds_of_share() const {
    const double least = 0.5 / (rows_ + 1);
    const double share = std::clamp((1 + learner_.target_mean()) / 2, least, 1 - least);
    return std::log(share / (1 - share));
  }

  MomentLearner<Scalar> learner_;
  Calibration calibration_;
  LikelihoodPointer likelihood_;
  Index first_step_;
  double rows_ = 0;
  std::vector<Scalar> residuals_;
  std::vector<bool> by_constant_;  ///< of the rows of the last learn()
};

template <typename Scalar>
class KalmanTraining : public TrainSolver<Scalar> {
 public:
  KalmanTraining(StreamOptions options, ThreadPool& pool) : learner_(std::move(options), pool) {}

  void start(const Rows<Scalar>& rows) { learner_.start(rows); }

  void learn(const Rows<Scalar>& rows, std::span<double> predictions) override {
    own_.resize(predictions.size());
    learner_.learn(rows, own_);
    std::copy(own_.begin(), own_.end(), predictions.begin());
  }

  void grow(Index dim, Index left_dim) override { learner_.grow(dim, left_dim); }
  void give_up_range() override { learner_.set_likelihood(make_likelihood(Task::regression)); }

  Model<double> model() override {
    learner_.stop_keeping();
    return in_double(learner_.model(), 1);
  }

  void archive(Archive& archive) override {
    archive.group("kalman", [&] { learner_.archive(archive); });
  }

  [[nodiscard]] const StreamLearner<Scalar>* stream() const override { return &learner_; }
  void promote(KalmanFilter<Scalar> filter) override { learner_.promote(std::move(filter)); }

  [[nodiscard]] std::string plan() const override { return "kalman: " + learner_.plan(); }
  [[nodiscard]] std::string origin() const override { return learner_.origin(); }
  [[nodiscard]] double noise() const override { return std::sqrt(learner_.noise_variance()); }
  [[nodiscard]] Index extra_row_reads() const override { return learner_.extra_row_reads(); }

 private:
  StreamLearner<Scalar> learner_;
  std::vector<Scalar> own_;
};

/// Whether most features are there in most rows, of all entries or of those that `counts`.
template <typename Scalar, typename Counts>
bool is_full(const RowBlock<Scalar>& block, Counts&& counts) {
  const auto entries = std::count_if(block.values.begin(), block.values.end(), counts);
  return 2 * static_cast<double>(entries) > static_cast<double>(block.dim) * static_cast<double>(block.count());
}

}  // namespace

template <typename Scalar>
Diagonal usual_diagonal(const FeatureMap& map, const RowBlock<Scalar>& first) {
  if (map.kind != Kind::gfm) return Diagonal::tied;
  const bool has_numbers = first.dense ||
                           std::any_of(map.columns().begin(), map.columns().end(),
                                       [](const Column& column) { return column.role == Column::Role::number; }) ||
                           is_full(first, [](Scalar x) { return x != Scalar(0) && x != Scalar(1); });
  return has_numbers ? Diagonal::free : Diagonal::zero;
}

template <typename Scalar>
bool moments_carry_signal(const RowBlock<Scalar>& first, Task task) {
  return likelihood_of(task).has_identity_link() && (first.dense || is_full(first, [](Scalar) { return true; }));
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
  if (settings.watches_moments) stream.moment = moment_options(settings, map);
  stream.batch = settings.batch;
  stream.standardised = map.layout != Layout::sparse && !map.is_measurement();
  // Every row has every feature, and their squares have mean 1.
  if (stream.standardised && map.is_dense()) stream.kalman.square_centre = 1;
  stream.keep.memory = settings.solver == Solver::kalman ? 0 : options.memory / 4;
  stream.keep.sign_restarts = map.kind == Kind::sensing;
  return stream;
}

template <typename Scalar>
std::unique_ptr<TrainSolver<Scalar>> make_train_solver(const TrainOptions& options, const TrainSettings& settings,
                                                       const FeatureMap& map, ThreadPool& pool,
                                                       const RowBlock<Scalar>* first,
                                                       const std::function<bool()>& interrupted) {
  if (settings.solver == Solver::moment)
    return std::make_unique<MomentTraining<Scalar>>(moment_options(settings, map), settings.batch,
                                                    map.target.likelihood(), pool);
  StreamOptions stream = stream_options(options, settings, map);
  stream.keep.interrupted = interrupted;
  auto training = std::make_unique<KalmanTraining<Scalar>>(std::move(stream), pool);
  if (first != nullptr) training->start(first->view());
  return training;
}

template std::unique_ptr<TrainSolver<float>> make_train_solver(const TrainOptions&, const TrainSettings&,
                                                               const FeatureMap&, ThreadPool&, const RowBlock<float>*,
                                                               const std::function<bool()>&);
template std::unique_ptr<TrainSolver<double>> make_train_solver(const TrainOptions&, const TrainSettings&,
                                                                const FeatureMap&, ThreadPool&, const RowBlock<double>*,
                                                                const std::function<bool()>&);
template Diagonal usual_diagonal(const FeatureMap&, const RowBlock<float>&);
template Diagonal usual_diagonal(const FeatureMap&, const RowBlock<double>&);
template bool moments_carry_signal(const RowBlock<float>&, Task);
template bool moments_carry_signal(const RowBlock<double>&, Task);

}  // namespace dyad
