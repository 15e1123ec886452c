#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dyad/data_error.h>
#include <dyad/parts.h>

#include "distributed/distributed_equations.h"
#include "training/multi_pass/level_choice.h"
#include "training/multi_pass/multi_pass_solver.h"
#include "training/state/train_state.h"

namespace dyad {
namespace {

using HeldOut = Question::HeldOut;
using About = Question::About;

const char* const name_of_model = "the model";

/// The model of the driver, with its training state. The evidence for a constant class probability is left out, because
/// the driver does not predict the rows.
class DriverModel {
 public:
  explicit DriverModel(const std::string& model) {
    state_.file = ModelFile::from_bytes(model, name_of_model);
    state_.settings = TrainSettings::saved(state_.file, name_of_model);
    if (state_.settings.solver == Solver::moment || state_.settings.precision == Precision::single_precision ||
        map().is_bilinear() || map().is_measurement() || state_.settings.half_life > 0)
      throw std::invalid_argument(
          "rows in parts are for models of one side, in double precision, without a half-life, that a Kalman filter "
          "has begun");
    state_.evidence.reset();
    state_.restore(TrainOptions(), name_of_model, pool_);
  }

  [[nodiscard]] const StreamLearner<double>& stream() const { return *state_.solver->stream(); }
  [[nodiscard]] Target& target() { return map().target; }
  [[nodiscard]] bool is_dense() const { return state_.file.features.is_dense(); }
  void remove_target_range() {
    target().low = Target().low;
    target().high = Target().high;
    state_.solver->give_up_range();
  }

  /// Replaces the filter, and returns the bytes of the model. `rows`: number of rows that all runs have used.
  std::string with(KalmanFilter<double> filter, Index rows) {
    if (!filter.is_finite())
      throw DataError("the rows", 0, 0,
                      "these numbers have led to a model that is not finite; expected sizes nearer to 1: rescale them");
    state_.solver->promote(std::move(filter));
    map().forget_values();
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

class Learning {
 public:
  Learning(const std::string& model, const PartsOptions& options)
      : options_(options), requests_(options), model_(model), filter_(model_.stream().filter()) {}

  PartsSummary run() {
    survey();
    // Flags alone, as in ratings and clicks, are learned best in one pass: no ridge made held-out rows better.
    const bool refines = options_.solver == Solver::newton || (options_.solver == Solver::automatic && !are_flags_);
    if (options_.solver != Solver::newton) pass(options_.share, refines ? HeldOut::is_left_out : HeldOut::counts);
    if (refines) refine();
    summary_.questions = requests_.count;
    const Index before = options_.share > 0 ? 0 : model_.rows();  // of other rows
    summary_.model = model_.with(std::move(filter_), before + summary_.rows);
    return std::move(summary_);
  }

 private:
  [[nodiscard]] double in_units(double loss) { return likelihood_of(model_.target().task).figure(loss); }
  void report(const PartsStep& step) const {
    if (options_.progress) options_.progress(step);
  }

  /// Features that the model has not met begin now, for all parts alike; a range that the rows leave is none.
  void survey() {
    const Statistics found = requests_(Question(), [](Archive&) {});
    Archive answer(found.sums);
    const Index dim = filter_.options().shape.dim;
    Vector<double> squares;
    Vector<double> counts;
    answer.matrix("squares", squares, dim, 1);
    answer.matrix("counts", counts, dim, 1);
    summary_.rows = found.rows();
    are_flags_ = squares == counts;
    const std::vector<double> scales = filter_.scales();
    constexpr double max_scale = 1e60;  // the fourth powers of the scale and of its inverse are finite
    for (Index j = 0; j < dim; ++j) {
      const double scale = std::sqrt(squares[j] / counts[j]);
      if (!(scales[static_cast<std::size_t>(j)] > 0) && scale > 1 / max_scale && scale < max_scale)
        filter_.begin(j, scale);
    }
    Target& target = model_.target();
    const double rounding = 1e-9 * target.scaling.scale;  // of targets that were scaled and scaled back
    const bool has_identity_link = likelihood_of(target.task).has_identity_link();
    if (has_identity_link && !target.range_is_given &&
        ((target.has_low() && found.least < target.low - rounding) ||
         (target.has_high() && found.most > target.high + rounding))) {
      requests_.has_range = false;
      model_.remove_target_range();
      filter_.set_likelihood(target.likelihood());
    }
    if (has_identity_link) {
      target.see(found.least);
      target.see(found.most);
    }
  }

  Statistics ask_about_filter(Question question) {
    return requests_(question, [&](Archive& asked) { asked.group("filter", [&] { filter_.archive(asked); }); });
  }

  /// The filter moves on together: what all parts have gained adds.
  Losses merge(const Statistics& gained) {
    Archive answer(gained.sums);
    NaturalParameters natural;
    double noise = 0;
    natural.archive(answer, filter_.natural_parameter_count());
    answer.number("noise", noise);
    NaturalParameters together = filter_.natural_parameters();
    // A part that had to begin again, for its rows were not what it expected, would take away what others have gained.
    for (std::size_t i = 0; i < natural.precisions.size(); ++i)
      if (2 * natural.precisions[i] < -together.precisions[i]) natural.precisions[i] = natural.moments[i] = 0;
    together.add(1, natural);
    const auto rows = static_cast<double>(gained.rows());
    if (rows > 0) filter_.merge(together, rows, noise / rows);
    return Losses(answer);
  }

  /// Every round takes as many rows as all before it, so that the filters of the workers stay close to the common
  /// start.
  void pass(double from, HeldOut held_out) {
    auto learned = static_cast<double>(std::max<Index>(1, model_.rows()));
    for (double to = from; to < 1; from = to) {
      to = std::min(1.0, from + learned / static_cast<double>(std::max<Index>(1, summary_.rows)));
      Question question;
      question.about = About::pass;
      question.held_out = held_out;
      question.from = from;
      question.to = to;
      const Statistics gained = ask_about_filter(question);
      learned += std::max<double>(learned, static_cast<double>(gained.rows()));
      if (gained.rows() == 0) continue;
      report({"one pass", to, in_units(merge(gained).loss()), -1});
    }
    summary_.origin = "from one pass over all parts";
  }

  /// One pass it is: what it has not seen so far is learned now.
  void without_refining() {
    if (options_.solver == Solver::newton) return pass(options_.share, HeldOut::counts);
    Question question;
    question.about = About::pass;
    question.held_out = HeldOut::counts_alone;
    const Statistics gained = ask_about_filter(question);
    if (gained.rows() > 0) (void)merge(gained);
  }

  void refine() {
    const std::vector<double> scales = filter_.scales();
    const bool are_one = std::all_of(scales.begin(), scales.end(), [](double s) { return s == 1 || s == 0; });
    const Scales asked_scales = are_one ? Scales() : scales;
    const auto in_scale = [&](SignedFactors<double> parameters, bool back) {
      std::vector<double> factors = scales;
      if (back)
        for (double& factor : factors) factor = factor > 0 ? 1 / factor : 0;
      if (!are_one) parameters.scale_features(factors);
      return parameters;
    };
    const auto equations = std::make_shared<DistributedNormalEquations>(requests_, filter_.options().shape,
                                                                        asked_scales, HeldOut::is_left_out);
    MultiPassSolverOptions options;
    options.kalman = filter_.options();
    options.max_passes = options_.most_looks;
    const bool are_sparse = !model_.is_dense();
    options.patience = 1;  // a look takes a job
    options.stride = are_sparse ? 1 : 3;
    options.first_level = are_sparse ? 2 : 0;  // a pass has led near enough to do without the strongest
    const SignedFactors<double> start = in_scale(filter_.parameters(), false);
    const Losses one_pass = equations->losses(start);
    if (!(one_pass.sums.weight > 0)) return without_refining();
    report({"one pass", 1, -1, in_units(one_pass.loss())});
    constexpr double exact = 1e-16;  // of the targets' variance: nothing is left to find
    if (options_.solver == Solver::automatic && one_pass.squares() < exact) return without_refining();
    constexpr std::size_t patience = 2;
    LevelChoice choice(one_pass.loss(), patience, options_.solver == Solver::automatic);
    const auto pass_solver = make_newton_pass_solver(equations, are_sparse, options, start);
    SignedFactors<double> best = start;
    double off = one_pass.squares();
    while (choice.goes_on() && pass_solver->advance({})) {
      const Losses now = equations->losses(pass_solver->parameters());
      report({pass_solver->level(), 1, -1, in_units(now.loss())});
      if (!choice.add(now.loss())) continue;
      best = pass_solver->parameters();
      off = now.squares();
    }
    summary_.one_pass = in_units(choice.one_pass());
    summary_.refined = in_units(choice.best_loss());
    if (choice.best() == 0) return without_refining();
    const auto all =
        std::make_shared<DistributedNormalEquations>(requests_, filter_.options().shape, asked_scales, HeldOut::counts);
    options.first_level += choice.best() - 1;
    options.max_passes = std::max<Index>(options_.most_looks / 2, 10);
    const auto last = make_newton_pass_solver(all, are_sparse, options, best);
    if (!last->advance({})) return without_refining();
    settle(in_scale(last->parameters(), true), scales, last->result().noise_variance, off);
    summary_.origin = fmt::format("from Gauss-Newton on all parts, {}", last->level());
  }

  /// A filter around a fit, with what the rows leave open. With few rows for each unknown, what held-out rows are off
  /// by says more of the noise than the fit.
  void settle(const SignedFactors<double>& fit, const std::vector<double>& scales, double noise, double off) {
    constexpr double many = 10;
    const auto rows = static_cast<double>(summary_.rows);
    const KalmanOptions& options = filter_.options();
    const bool has_many = rows >= many * static_cast<double>(options.shape.unknowns());
    const Rows<double> none = Rows<double>::dense({}, options.shape.dim, {});
    filter_ = KalmanFilter<double>(options, filter_.first_prior(), fit, scales, has_many ? noise : std::max(noise, off),
                                   rows, none);
    Question question;
    question.about = About::precisions;
    (void)merge(ask_about_filter(question));
  }

  const PartsOptions& options_;
  WorkerRequests requests_;
  DriverModel model_;
  KalmanFilter<double> filter_;
  bool are_flags_ = false;  ///< all values are 0 or 1, or -1
  PartsSummary summary_;
};

}  // namespace

std::string begin_parts(const std::string& model) {
  DriverModel own(model);
  return own.with(own.stream().filter(), own.rows());
}

PartsSummary learn_from_parts(const std::string& model, const PartsOptions& options) {
  if (options.solver == Solver::moment || options.solver == Solver::variational)
    throw std::invalid_argument("the solver of rows in parts must be automatic, kalman or newton");
  if (!(options.share >= 0 && options.share <= 1)) throw std::invalid_argument("the share must lie in [0, 1]");
  return Learning(model, options).run();
}

}  // namespace dyad
