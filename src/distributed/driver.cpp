#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dyad/distributed.h>
#include <dyad/error.h>

#include "distributed/anova_driver.h"
#include "distributed/distributed_equations.h"
#include "training/multi_pass/early_stopping.h"
#include "training/multi_pass/multi_pass_solver.h"
#include "training/state/train_state.h"

namespace dyad {
namespace {

using HeldOutUse = Request::HeldOutUse;
using Type = Request::Type;

const char* const driver_model_name = "the model";

/// Model and training state of the driver. The evidence against a constant class probability (ClassEvidence) is
/// removed, because the driver does not predict rows.
class DriverModel {
 public:
  explicit DriverModel(const std::string& model) {
    state_.file = ModelFile::from_bytes(model, driver_model_name);
    state_.settings = TrainSettings::load(state_.file, driver_model_name);
    if (state_.settings.solver == Solver::moment || state_.settings.precision == Precision::single_precision ||
        map().is_bilinear() || map().is_measurement() || state_.settings.half_life > 0)
      throw std::invalid_argument(
          "model: distributed training needs a model of the kind gfm in double precision, without half_life, and from "
          "another solver than moment");
    state_.evidence.reset();
    state_.restore(TrainOptions(), driver_model_name, pool_);
  }

  [[nodiscard]] const StreamLearner<double>& stream() const { return *state_.solver->stream(); }
  [[nodiscard]] Target& target() { return map().target; }
  [[nodiscard]] bool is_dense() const { return state_.file.features.is_dense(); }
  void remove_target_range() {
    target().low = Target().low;
    target().high = Target().high;
    state_.solver->remove_target_range();
  }

  /// Replaces the filter and returns the bytes of the model. `rows`: number of rows used in all runs.
  std::string save(KalmanFilter<double> filter, Index rows) {
    if (!filter.is_finite())
      throw DataError(
          "the rows", 0, 0,
          "training on these values gave a model that is not finite (rescale the columns to values near 1)");
    state_.solver->promote(std::move(filter), StreamLearner<double>::Origin::multi_pass);
    map().clear_values();
    state_.settings.rows = rows;
    state_.save();
    return state_.file.to_bytes();
  }
  [[nodiscard]] Index rows() const { return state_.settings.rows; }

 private:
  [[nodiscard]] FeatureMap& map() { return state_.file.features; }

  ThreadPool pool_{1};
  TrainState<double> state_;  ///< its solver uses the pool
};

/// One run of train_distributed(). Does not own the options; the caller keeps them alive.
class DistributedTraining {
 public:
  DistributedTraining(const std::string& model, const DistributedOptions& options)
      : options_(options), requests_(options), model_(model), filter_(model_.stream().filter()) {}

  /// Trains on the rows of all workers.
  DistributedSummary run() {
    survey();
    // If all features are indicators, multi-pass training is skipped: on data sets of ratings and clicks, Gauss-Newton
    // did not decrease the held-out loss of one pass at any ridge.
    const bool is_multi_pass =
        options_.solver == Solver::newton || (options_.solver == Solver::automatic && !are_indicators_);
    if (options_.solver != Solver::newton)
      train_one_pass(options_.trained_share, is_multi_pass ? HeldOutUse::excluded : HeldOutUse::included);
    if (is_multi_pass) train_multi_pass();
    summary_.requests = requests_.count;
    // If trained_share is positive, the workers' rows include the rows on which the model was trained.
    const Index other_rows = options_.trained_share > 0 ? 0 : model_.rows();
    summary_.model = model_.save(std::move(filter_), other_rows + summary_.rows);
    return std::move(summary_);
  }

 private:
  /// The reported form of a mean loss. Regression: its square root, in the units of the target.
  [[nodiscard]] double in_units(double loss) { return likelihood_of(model_.target().task).metric(loss); }
  void report(const DistributedProgress& step) const {
    if (options_.progress) options_.progress(step);
  }

  /// Counts the rows and adds features that the filter has not seen yet. Their scale is the root mean square of their
  /// non-zero values. Removes the range of the target if some target lies outside. The requests send the result to all
  /// workers.
  void survey() {
    const Statistics statistics = requests_(Request(), [](Archive&) {});
    Archive response(statistics.sums);
    const Index dim = filter_.options().shape.dim;
    Vector<double> squares;
    Vector<double> counts;
    response.matrix("squares", squares, dim, 1);
    response.matrix("counts", counts, dim, 1);
    summary_.rows = statistics.rows();
    are_indicators_ = squares == counts;
    const std::vector<double> scales = filter_.scales();
    constexpr double max_scale = 1e60;  // fourth powers of the scale and of its inverse are finite
    for (Index j = 0; j < dim; ++j) {
      const double scale = std::sqrt(squares[j] / counts[j]);
      if (!(scales[static_cast<std::size_t>(j)] > 0) && scale > 1 / max_scale && scale < max_scale)
        filter_.add_feature(j, scale);
    }
    Target& target = model_.target();
    // Tolerance for targets that were scaled and scaled back, in units of the scale. It covers rounding errors for
    // targets of up to 1e-9 / 2.2e-16 = 4.5e6 scales.
    constexpr double relative_rounding = 1e-9;
    const double rounding = relative_rounding * target.scaling.scale;
    const bool has_identity_link = likelihood_of(target.task).has_identity_link();
    if (has_identity_link && !target.is_range_given &&
        ((target.has_low() && statistics.min_target < target.low - rounding) ||
         (target.has_high() && statistics.max_target > target.high + rounding))) {
      requests_.has_range = false;
      model_.remove_target_range();
      filter_.set_likelihood(target.likelihood());
    }
    if (has_identity_link) {
      target.update_bounds(statistics.min_target);
      target.update_bounds(statistics.max_target);
    }
  }

  /// Sends a request whose body is the filter.
  Statistics send_filter(Request request) {
    return requests_(request, [&](Archive& body) { body.group("filter", [&] { filter_.archive(body); }); });
  }

  /// Adds the increases of the natural parameters of all workers to those of the filter. With the precision P0 of the
  /// common start and P_k of worker k, the result has the precision P0 + sum_k (P_k - P0), as in the Bayesian committee
  /// machine (Tresp 2000). Returns the losses of the response.
  Losses merge(const Statistics& statistics) {
    Archive response(statistics.sums);
    NaturalParameters increase;
    double noise = 0;
    increase.archive(response, filter_.natural_parameter_count());
    response.number("noise", noise);
    NaturalParameters total = filter_.natural_parameters();
    // A filter that diverges resets its variances, so that its increase is negative. The increase of a parameter is
    // ignored if it would remove more than half of the precision.
    for (std::size_t i = 0; i < increase.precisions.size(); ++i)
      if (2 * increase.precisions[i] < -total.precisions[i]) increase.precisions[i] = increase.moments[i] = 0;
    total.add(1, increase);
    const auto rows = static_cast<double>(statistics.rows());
    if (rows > 0) filter_.merge(total, rows, noise / rows);
    filter_.update_prior();
    return Losses(response);
  }

  /// One pass in rounds over the rows whose hash quantile is at least `from`. Each round has about as many rows as the
  /// model has learned before, so that the filters of the workers stay close to their common start.
  void train_one_pass(double from, HeldOutUse held_out_use) {
    auto learned = static_cast<double>(std::max<Index>(1, model_.rows()));
    for (double to = from; to < 1; from = to) {
      to = std::min(1.0, from + learned / static_cast<double>(std::max<Index>(1, summary_.rows)));
      Request request;
      request.type = Type::pass;
      request.held_out_use = held_out_use;
      request.min_quantile = from;
      request.max_quantile = to;
      const Statistics statistics = send_filter(request);
      learned += std::max<double>(learned, static_cast<double>(statistics.rows()));
      if (statistics.rows() == 0) continue;
      report({"one pass", to, in_units(merge(statistics).loss()), -1});
    }
    summary_.origin = "one pass over the rows of all workers";
  }

  /// Completes the result of one pass with the rows that were held out.
  void finish_one_pass() {
    if (options_.solver == Solver::newton) return train_one_pass(options_.trained_share, HeldOutUse::included);
    Request request;
    request.type = Type::pass;
    request.held_out_use = HeldOutUse::only;
    const Statistics statistics = send_filter(request);
    if (statistics.rows() > 0) (void)merge(statistics);
  }

  /// Gauss-Newton over a regularization path. The level with the smallest held-out loss is fitted to all rows.
  void train_multi_pass() {
    const std::vector<double> scales = filter_.scales();
    const bool have_unit_scale = std::all_of(scales.begin(), scales.end(), [](double s) { return s == 1 || s == 0; });
    const Scales request_scales = have_unit_scale ? Scales() : scales;
    // Converts parameters for the original features to parameters for features divided by their scales, or back.
    const auto rescale = [&](SignedFactors<double> parameters, bool is_inverse) {
      std::vector<double> factors = scales;
      if (is_inverse)
        for (double& factor : factors) factor = factor > 0 ? 1 / factor : 0;
      if (!have_unit_scale) parameters.scale_features(factors);
      return parameters;
    };
    const auto equations = std::make_shared<DistributedNormalEquations>(requests_, filter_.options().shape,
                                                                        request_scales, HeldOutUse::excluded);
    MultiPassSolverOptions options;
    options.kalman = filter_.options();
    options.max_passes = options_.max_data_passes;
    const bool are_sparse = !model_.is_dense();
    // Each data pass is a job on all workers. To limit their number, levels end early and dense rows skip path entries.
    options.patience = 1;
    options.stride = are_sparse ? 1 : 3;
    options.first_level = are_sparse ? 2 : 0;  // the start from one pass makes the strongest ridges unnecessary
    const SignedFactors<double> start = rescale(filter_.parameters(), false);
    const Losses one_pass = equations->losses(start);
    if (!(one_pass.sums.weight > 0)) return finish_one_pass();
    report({"one pass", 1, -1, in_units(one_pass.loss())});
    // Largest mean squared residual of an exact fit, relative to the variance of the targets. Its square root, 1e-8, is
    // about the square root of machine epsilon.
    constexpr double exact_fit_variance = 1e-16;
    if (options_.solver == Solver::automatic && one_pass.squares() < exact_fit_variance) return finish_one_pass();
    // Levels over which the held-out loss must decrease. Sensitivity: docs/constants.md.
    constexpr std::size_t patience_levels = 2;
    EarlyStopping stopping(one_pass.loss(), patience_levels, options_.solver == Solver::automatic);
    const auto pass_solver = make_newton_pass_solver(equations, are_sparse, options, start);
    SignedFactors<double> best = start;
    double held_out_squares = one_pass.squares();
    while (stopping.should_continue() && pass_solver->advance({})) {
      const Losses losses = equations->losses(pass_solver->parameters());
      report({pass_solver->level(), 1, -1, in_units(losses.loss())});
      if (!stopping.add(losses.loss())) continue;
      best = pass_solver->parameters();
      held_out_squares = losses.squares();
    }
    summary_.one_pass = in_units(stopping.one_pass_loss());
    summary_.multi_pass = in_units(stopping.best_loss());
    if (stopping.best() == 0) return finish_one_pass();
    const auto all = std::make_shared<DistributedNormalEquations>(requests_, filter_.options().shape, request_scales,
                                                                  HeldOutUse::included);
    options.first_level += stopping.best() - 1;
    // Lower limit of max_passes of the final fit. Sensitivity: docs/constants.md.
    constexpr Index min_final_passes = 10;
    options.max_passes = std::max<Index>(options_.max_data_passes / 2, min_final_passes);
    const auto final_solver = make_newton_pass_solver(all, are_sparse, options, best);
    if (!final_solver->advance({})) return finish_one_pass();
    make_filter(rescale(final_solver->parameters(), true), scales, final_solver->result().noise_variance,
                held_out_squares);
    summary_.origin = fmt::format("Gauss-Newton on the rows of all workers, {}", final_solver->level());
  }

  /// Replaces the filter by one with the means of a fit and Laplace variances. `noise`: residual variance of the fit.
  /// `held_out_squares`: mean squared residual of held-out rows, a lower limit of the noise variance if there are few
  /// rows per unknown, because the fit then underestimates it.
  void make_filter(const SignedFactors<double>& fit, const std::vector<double>& scales, double noise,
                   double held_out_squares) {
    // From here on, the residual variance of the fit is used alone. Sensitivity: docs/constants.md.
    constexpr double min_rows_per_unknown = 10;
    const auto rows = static_cast<double>(summary_.rows);
    const KalmanOptions& options = filter_.options();
    const bool has_reliable_noise = rows >= min_rows_per_unknown * static_cast<double>(options.shape.unknowns());
    const Rows<double> none = Rows<double>::dense({}, options.shape.dim, {});
    filter_ = KalmanFilter<double>(options, filter_.prior_variances(), fit, scales,
                                   has_reliable_noise ? noise : std::max(noise, held_out_squares), rows, none);
    Request request;
    request.type = Type::precisions;
    (void)merge(send_filter(request));
  }

  const DistributedOptions& options_;
  WorkerRequests requests_;
  DriverModel model_;
  KalmanFilter<double> filter_;
  bool are_indicators_ = false;  ///< sums of squares equal counts of non-zeros, as for values 0, 1 and -1
  DistributedSummary summary_;
};

}  // namespace

std::string start_workers(const std::string& model) {
  if (ModelFile file = ModelFile::from_bytes(model, driver_model_name); file.anova)
    return start_anova_workers(std::move(file));
  DriverModel driver(model);
  return driver.save(driver.stream().filter(), driver.rows());
}

DistributedSummary train_distributed(const std::string& model, const DistributedOptions& options) {
  if (options.solver == Solver::moment || options.solver == Solver::variational || options.solver == Solver::sampling)
    throw std::invalid_argument("solver must be automatic, kalman or newton for distributed training");
  if (!(options.trained_share >= 0 && options.trained_share <= 1))
    throw std::invalid_argument(fmt::format("trained_share must lie in [0, 1], got {}", options.trained_share));
  if (ModelFile file = ModelFile::from_bytes(model, driver_model_name); file.anova)
    return train_anova_workers(std::move(file), options);
  return DistributedTraining(model, options).run();
}

}  // namespace dyad
