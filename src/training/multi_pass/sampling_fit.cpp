#include "training/multi_pass/sampling_fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "solvers/sampling/gibbs_sampler.h"
#include "solvers/sampling/sample_average.h"
#include "solvers/sampling/unknown_probes.h"
#include "solvers/sampling/variance_model.h"

namespace dyad {
namespace {

/// Sweeps before the first sample. The latent targets of classes mix more slowly. Sensitivity: docs/constants.md.
constexpr Index regression_burn_in_sweeps = 20;
constexpr Index classification_burn_in_sweeps = 50;  // sensitivity: docs/constants.md
/// Sweeps after the held-out rows, a tenth of all, join the chain. Sensitivity: docs/constants.md.
constexpr Index joining_sweeps = 10;
/// Samples from which the first chain estimates the excess loss and the rank. Sensitivity: docs/constants.md.
constexpr Index selection_samples = 32;
/// Relative excess loss at which sampling ends, over the average of infinitely many samples, and relative excess loss
/// of the rank of the result over the best rank. Smaller than the standard error of the loss on 100,000 rows.
constexpr double relative_excess = 1e-3;
/// Limits of the number of samples if it is not given. Sensitivity of the upper one: docs/constants.md.
constexpr Index min_automatic_samples =
    100;  // the average of n independent samples has 1 + 1/n times the posterior variance
constexpr Index max_automatic_samples = 300;  // sensitivity: docs/constants.md
/// Ranks of the result among which the held-out rows select.
constexpr Index candidate_ranks[] = {8, 16, 32};
constexpr std::size_t default_rank_candidate = 1;

/// Mean of paired differences a - b, weighted, and its standard error.
struct PairedDifference {
  double mean = 0;
  double standard_error = 0;
};

PairedDifference compare(const std::vector<double>& a, const std::vector<double>& b,
                         const std::vector<double>& weights) {
  double weight = 0;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    weight += weights[i];
    sum += weights[i] * (a[i] - b[i]);
    squares += weights[i] * weights[i] * (a[i] - b[i]) * (a[i] - b[i]);
  }
  return {sum / weight, std::sqrt(squares) / weight};
}

/// State of fit_by_sampling().
template <typename Scalar>
class SamplingRun {
 public:
  SamplingRun(const MultiPassContext<Scalar>& context, const Rows<Scalar>& rows, HeldOutFolds<Scalar>& folds,
              Index max_sweeps, MultiPassResult<Scalar>& result)
      : context_(context),
        rows_(rows),
        folds_(folds),
        result_(result),
        max_sweeps_(max_sweeps),
        columns_(make_columns()),
        groups_(make_groups()),
        colours_(columns_, groups_.colouring_order(columns_)),
        sampler_(columns_, groups_, colours_, sampler_options(), context.pool),
        average_(sampler_),
        probes_(rows, groups_, context.kalman().shape, context.options.seed) {
    for (std::size_t i = 0; i < columns_.weights().size(); ++i) {
      const Index source = columns_.source_rows()[i];
      const bool is_validation = source >= rows.count();
      const bool is_held_out =
          is_validation || (!folds.has_validation_rows() && folds.fold_of()[static_cast<std::size_t>(source)] == 0);
      all_weights_.push_back(is_validation ? 0.0F : columns_.weights()[i]);
      training_weights_.push_back(is_held_out ? 0.0F : columns_.weights()[i]);
      if (!is_held_out || !(columns_.weights()[i] > 0)) continue;
      held_out_.push_back(i);
      held_out_weights_.push_back(static_cast<double>(columns_.weights()[i]));
    }
  }

  std::optional<SampledFit> run() {
    const HeldOutLoss one_pass = folds_.evaluate();
    result_.one_pass = one_pass.loss;
    result_.held_out_rows = static_cast<Index>(held_out_.size());
    context_.report({"one pass", std::numeric_limits<double>::quiet_NaN(), one_pass.loss, false});
    sampler_.set_weights(training_weights_);
    start_average();
    const Index burn_in = options().is_classification ? classification_burn_in_sweeps : regression_burn_in_sweeps;
    if (!burn(burn_in)) return std::nullopt;
    const Index samples = select_samples();
    if (average_.samples() == 0) return std::nullopt;
    // The loss decreases with the number of samples. More of them decide if one pass is better so far.
    while (context_.options.can_select_one_pass && !(mean_loss(held_out_losses()) < result_.one_pass) &&
           average_.samples() < samples && add_samples(std::min(samples, 2 * average_.samples()), samples, false)) {
    }
    select_rank();
    if (options().is_classification)
      result_.gain_over_constant = one_pass.weight * (one_pass.constant_loss - result_.multi_pass);
    if (context_.is_interrupted()) return finish(training_weights_);
    if (context_.options.can_select_one_pass && !(result_.multi_pass < result_.one_pass)) return std::nullopt;
    if (folds_.has_validation_rows()) {
      (void)add_samples(samples, samples, false);
      select_rank();
      return finish(all_weights_);
    }
    SampledFit first = finish(training_weights_);
    sampler_.set_weights(all_weights_);
    start_average();
    if (!burn(joining_sweeps)) return first;
    (void)add_samples(samples, samples, true);
    // After an interruption, the result is the average of more samples.
    return average_.samples() < first.posterior.samples ? std::move(first) : finish(all_weights_);
  }

 private:
  [[nodiscard]] FeatureColumns make_columns() const {
    std::vector<Rows<Scalar>> views{rows_};
    if (folds_.has_validation_rows()) views.push_back(folds_.held_out_rows());
    return FeatureColumns(std::span<const Rows<Scalar>>(views));
  }
  [[nodiscard]] FeatureGroups make_groups() const {
    const PriorGroups& groups = context_.options.groups;
    return context_.options.discovers_groups ? FeatureGroups::discover(columns_, groups.count())
                                             : FeatureGroups::of(groups, columns_);
  }
  [[nodiscard]] SamplerOptions sampler_options() const {
    return {context_.kalman().shape, context_.kalman().likelihood->is_classification(), context_.options.seed};
  }
  [[nodiscard]] const SamplerOptions& options() const { return sampler_.options(); }

  void start_average() {
    average_ = SampleAverage(sampler_);
    average_start_ = std::chrono::steady_clock::now();
    probes_ = UnknownProbes(rows_, groups_, options().shape, options().seed);
    sums_.assign(columns_.weights().size(), 0.0);
    squares_.assign(sums_.size(), 0.0);
  }

  /// Returns false after an interruption.
  bool burn(Index sweeps) {
    for (Index i = 0; i < sweeps; ++i) {
      if (context_.is_interrupted()) return false;
      sampler_.sweep();
      result_.row_reads += columns_.row_count();
    }
    return true;
  }

  /// Continues until the average has `count` samples. `planned`: number of samples in reports. Returns false after an
  /// interruption.
  bool add_samples(Index count, Index planned, bool is_refit) {
    while (average_.samples() < count) {
      if (!burn(1)) return false;
      average_.add(sampler_);
      probes_.add(sampler_);
      for (std::size_t i = 0; i < sums_.size(); ++i) {
        const double f = sampler_.predictor(static_cast<Index>(i));
        sums_[i] += f;
        squares_[i] += f * f;
      }
      report(planned, is_refit);
    }
    return true;
  }

  /// Reports every eighth sample, and the last one, with the time that the chain needs for the remaining ones.
  void report(Index planned, bool is_refit) const {
    constexpr Index interval = 8;
    if (!context_.options.progress || (average_.samples() % interval != 0 && average_.samples() != planned)) return;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - average_start_;
    const double remaining =
        static_cast<double>(planned - average_.samples()) / static_cast<double>(average_.samples());
    context_.report({fmt::format("sample {} of {}, {:.1f} s left", average_.samples(), planned,
                                 std::max(0.0, remaining) * elapsed.count()),
                     std::numeric_limits<double>::quiet_NaN(),
                     is_refit ? std::numeric_limits<double>::quiet_NaN() : mean_loss(held_out_losses()), is_refit});
  }

  [[nodiscard]] double mean(std::size_t i) const { return sums_[i] / static_cast<double>(average_.samples()); }
  [[nodiscard]] double variance(std::size_t i) const {
    return std::max(0.0, squares_[i] / static_cast<double>(average_.samples()) - mean(i) * mean(i));
  }
  [[nodiscard]] double loss(std::size_t i, double mean, double variance) const {
    return context_.options.loss(static_cast<double>(columns_.targets()[i]),
                                 context_.kalman().likelihood->posterior_predictor(mean, variance));
  }
  /// Losses of the held-out rows for the exact average of the samples.
  [[nodiscard]] std::vector<double> held_out_losses() const {
    std::vector<double> losses;
    for (const std::size_t i : held_out_) losses.push_back(loss(i, mean(i), variance(i)));
    return losses;
  }
  [[nodiscard]] double mean_loss(const std::vector<double>& losses) const {
    return compare(losses, std::vector<double>(losses.size()), held_out_weights_).mean;
  }

  /// Runs the first chain and returns the number of samples of the result.
  Index select_samples() {
    const std::optional<Index> given = context_.options.samples;
    const Index count = std::min(selection_samples, given.value_or(selection_samples));
    const Index half = std::max<Index>(1, count / 2);
    if (!add_samples(half, count, false)) return half;
    const std::vector<double> half_losses = held_out_losses();
    if (!add_samples(count, count, false)) return count;
    const std::vector<double> losses = held_out_losses();
    if (given) return *given;
    const PairedDifference excess = compare(half_losses, losses, held_out_weights_);
    const double needed = static_cast<double>(count) * std::max(excess.mean, excess.standard_error) /
                          (relative_excess * mean_loss(losses));
    const Index limit =
        std::clamp(max_sweeps_ - sampler_.sweeps() - joining_sweeps, min_automatic_samples, max_automatic_samples);
    return needed > static_cast<double>(limit) ? limit : std::max(min_automatic_samples, static_cast<Index>(needed));
  }

  /// Selects the smallest rank whose held-out loss exceeds that of the best rank by at most `relative_excess`.
  void select_rank() {
    rank_ = std::min(candidate_ranks[default_rank_candidate], options().shape.max_rank());
    if (held_out_.empty()) return;
    const VarianceModel variances = fit_variances(training_weights_);
    std::vector<Index> ranks;
    for (const Index rank : candidate_ranks)
      if (rank <= options().shape.max_rank()) ranks.push_back(rank);
    if (ranks.empty()) ranks.push_back(options().shape.max_rank());
    const Rows<Scalar> rows = folds_.held_out_rows();
    std::vector<double> weights;
    for (Index i = 0; i < rows.count(); ++i) weights.push_back(static_cast<double>(rows.weight(i)));
    std::vector<std::vector<double>> losses;
    for (const Index rank : ranks) {
      losses.push_back(losses_at_rank(rank, variances));
      context_.report({fmt::format("average with rank {}", rank), std::numeric_limits<double>::quiet_NaN(),
                       compare(losses.back(), std::vector<double>(weights.size()), weights).mean, false});
    }
    const auto best = std::min_element(losses.begin(), losses.end(),
                                       [&](const auto& a, const auto& b) { return compare(a, b, weights).mean < 0; });
    const double best_loss = compare(*best, std::vector<double>(best->size()), weights).mean;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const double excess = compare(losses[i], *best, weights).mean;
      if (excess > relative_excess * best_loss) continue;
      rank_ = ranks[i];
      result_.multi_pass = best_loss + excess;
      return;
    }
  }

  [[nodiscard]] VarianceModel fit_variances(const std::vector<float>& weights) const {
    std::vector<double> variances(sums_.size());
    for (std::size_t i = 0; i < variances.size(); ++i) variances[i] = variance(i);
    return VarianceModel::fit(columns_, variances, weights);
  }

  /// Losses of the held-out rows for the average model of this rank.
  [[nodiscard]] std::vector<double> losses_at_rank(Index rank, const VarianceModel& variances) {
    const SignedFactors<Scalar> model = without_groups(average_.model(rank)).template cast<Scalar>();
    const Rows<Scalar> rows = folds_.held_out_rows();
    std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
    model.predict(rows, predictions);
    std::vector<double> losses;
    for (Index i = 0; i < rows.count(); ++i) {
      double log_variance = variances.intercept;
      rows.for_each_entry(i, [&](Index j, Scalar x) {
        log_variance += variances.coefficients[static_cast<std::size_t>(j)] * static_cast<double>(x * x);
      });
      const auto position = static_cast<std::size_t>(i);
      losses.push_back(context_.options.loss(static_cast<double>(rows.targets()[position]),
                                             context_.kalman().likelihood->posterior_predictor(
                                                 static_cast<double>(predictions[position]), std::exp(log_variance))));
    }
    return losses;
  }

  /// The model without the features of the groups.
  [[nodiscard]] SignedFactors<double> without_groups(SignedFactors<double> model) const {
    const Index dim = columns_.dim();
    model.weights.conservativeResize(dim);
    model.A.conservativeResize(dim, model.A.cols());
    if (model.squares.size() > 0) model.squares.conservativeResize(dim);
    return model;
  }

  /// Mean noise variance of the rows with a positive weight.
  [[nodiscard]] double mean_noise_variance(const SampledPosterior& posterior, const std::vector<float>& weights) const {
    std::vector<double> log_noise(weights.size(), posterior.log_noise);
    for (Index j = 0; j < columns_.dim(); ++j)
      for (const std::int32_t row : columns_.column(j).rows)
        log_noise[static_cast<std::size_t>(row)] += posterior.log_noise_term(static_cast<std::size_t>(j));
    double sum = 0;
    double total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      sum += static_cast<double>(weights[i]) * std::exp(log_noise[i]);
      total += static_cast<double>(weights[i]);
    }
    return sum / total;
  }

  /// The average of the current chain. `weights`: of the rows that the chain uses.
  [[nodiscard]] SampledFit finish(const std::vector<float>& weights) {
    const SignedFactors<double> all = average_.model(rank_);
    const Index dim = columns_.dim();
    const bool has_groups = all.weights.size() > dim;
    const VarianceModel variances = fit_variances(weights);
    const std::vector<double> unknown_variances = probes_.coefficients(variances);
    const SampleAverage::Noise noise = average_.noise();
    SampledFit result;
    result.fit.means = without_groups(all);
    SampledPosterior& posterior = result.posterior;
    posterior.samples = average_.samples();
    posterior.log_variance = variances.intercept;
    posterior.log_variances = variances.coefficients;
    posterior.log_noise = noise.log_variance;
    const auto by_feature = [&](const std::vector<double>& values) {
      std::vector<double> by(values.begin(), values.begin() + dim);
      for (const std::int32_t group : groups_.merged) by.push_back(values[static_cast<std::size_t>(dim + group)]);
      return by;
    };
    if (!options().is_classification) {
      posterior.log_noise_factors = by_feature(noise.log_factors);
      posterior.log_noise_deviations = by_feature(noise.deviations);
      result.fit.noise_variance = mean_noise_variance(posterior, weights);
    }
    for (const std::int32_t group : groups_.merged) {
      const Index row = dim + group;
      posterior.log_variances.push_back(unknown_variances[static_cast<std::size_t>(group)]);
      posterior.unknown_weights.push_back(has_groups ? all.weights[row] : 0);
      for (Index c = 0; c < all.A.cols(); ++c) posterior.unknown_factors.push_back(has_groups ? all.A(row, c) : 0);
    }
    result_.levels = sampler_.sweeps();
    result_.level = fmt::format("average of {} samples", average_.samples());
    return result;
  }

  const MultiPassContext<Scalar>& context_;
  Rows<Scalar> rows_;
  HeldOutFolds<Scalar>& folds_;
  MultiPassResult<Scalar>& result_;
  Index max_sweeps_;
  FeatureColumns columns_;
  FeatureGroups groups_;
  ColourClasses colours_;
  GibbsSampler sampler_;
  SampleAverage average_;
  std::chrono::steady_clock::time_point average_start_;
  UnknownProbes probes_;
  std::vector<float> all_weights_;
  std::vector<float> training_weights_;  ///< 0 for held-out rows
  std::vector<std::size_t> held_out_;    ///< held-out rows in the order of the columns
  std::vector<double> held_out_weights_;
  std::vector<double> sums_;     ///< of the linear predictor of each row over the samples
  std::vector<double> squares_;  ///< of its square
  Index rank_ = 0;               ///< of the result
};

}  // namespace

template <typename Scalar>
std::optional<SampledFit> fit_by_sampling(const MultiPassContext<Scalar>& context, const Rows<Scalar>& rows,
                                          HeldOutFolds<Scalar>& folds, Index max_sweeps,
                                          MultiPassResult<Scalar>& result) {
  SamplingRun<Scalar> run(context, rows, folds, max_sweeps, result);
  return run.run();
}

double estimate_sampling_bytes(double rows, double entries, double features, const ModelShape& shape) {
  constexpr double predictor_sums = 2 * sizeof(double) + 2 * sizeof(float);
  const auto columns = static_cast<double>(2 * std::max(SampleAverage::default_size, shape.rank));
  constexpr double model_copies = 2;
  const double model_bytes =
      model_copies * static_cast<double>(std::max(candidate_ranks[2], shape.rank)) * sizeof(double);
  return FeatureColumns::bytes_for(rows, entries) +
         GibbsSampler::bytes_for(rows, features, shape.rank, shape.is_bilinear()) + rows * predictor_sums +
         features * (columns * sizeof(float) + model_bytes);
}

template std::optional<SampledFit> fit_by_sampling(const MultiPassContext<float>&, const Rows<float>&,
                                                   HeldOutFolds<float>&, Index, MultiPassResult<float>&);
template std::optional<SampledFit> fit_by_sampling(const MultiPassContext<double>&, const Rows<double>&,
                                                   HeldOutFolds<double>&, Index, MultiPassResult<double>&);

}  // namespace dyad
