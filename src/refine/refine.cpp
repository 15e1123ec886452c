#include "refine/refine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/stable_hash.h"
#include "newton/moment_start.h"
#include "refine/level_choice.h"
#include "stream/kept_start.h"

namespace dyad {
namespace {

constexpr Index fewest_rows = 10;
constexpr Index few_rows = 5000;  // below, every row is held out once
constexpr int turns_of_few = 5;
constexpr Index most_numbers = 100'000;  // of a model that is learned so many times at once
constexpr double held_out_share = 0.1;
constexpr Index most_levels = 200;
constexpr Index level_without_folds = 2;  // for rows too few to hold any out
// Numbers that all looks at the rows together may touch, unless asked for: about as much time either way.
constexpr double most_work_dense = 6e10;
constexpr double most_work_sparse = 6e9;

/// Beliefs for features of the same scale times `factors`.
Beliefs<double> rescaled(Beliefs<double> beliefs, const std::vector<double>& factors) {
  beliefs.means.scale_features(factors);
  if (beliefs.variances.dim() > 0) {
    beliefs.variances.scale_features(factors);
    beliefs.variances.scale_features(factors);
  }
  return beliefs;
}

/// A number for the content of a row: rows that are the same but for rounding have the same.
template <typename Scalar>
std::uint64_t fingerprint(const Rows<Scalar>& rows, Index i) {
  std::string bytes;
  const auto add = [&](Index place, Scalar value) {
    constexpr double grid = 1 << 20;
    constexpr double odd = 0.3717;  // so that no usual value lies at an edge
    const std::array<std::int64_t, 2> numbers{place, std::llround(static_cast<double>(value) * grid + odd)};
    bytes.append(reinterpret_cast<const char*>(numbers.data()), sizeof(numbers));
  };
  add(-1, rows.targets()[static_cast<std::size_t>(i)]);
  rows.for_each_entry(i, add);
  return stable_hash(bytes, 0);
}

/// How large the values of each feature are where they are not zero.
template <typename Scalar>
std::vector<double> weighted_scales(const Rows<Scalar>& rows) {
  std::vector<double> squares(static_cast<std::size_t>(rows.dim()));
  std::vector<double> weights(squares.size());
  for (Index i = 0; i < rows.count(); ++i) {
    const auto weight = static_cast<double>(rows.weight(i));
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      squares[static_cast<std::size_t>(j)] += weight * static_cast<double>(x) * static_cast<double>(x);
      weights[static_cast<std::size_t>(j)] += x != 0 ? weight : 0;
    });
  }
  for (std::size_t j = 0; j < squares.size(); ++j) squares[j] = weights[j] > 0 ? std::sqrt(squares[j] / weights[j]) : 0;
  return squares;
}

template <typename Scalar>
class Refinement {
 public:
  Refinement(const StreamLearner<Scalar>& learner, KeptRows<Scalar>& rows, KeptRows<Scalar>* validation,
             const RefineOptions& options, Workers& workers)
      : learner_(learner),
        one_pass_(learner.filter()),
        kept_(rows),
        validation_(validation),
        options_(options),
        workers_(workers),
        kalman_(one_pass_.options()) {
    refiner_options_.kalman = kalman_;
    refiner_options_.solver = options.solver;
    refiner_options_.exact_steps = options.exact_weights;
    refiner_options_.interrupted = options.interrupted;
    is_bounded_ = options.may_decline || options.exact_weights;
    if (is_bounded_ && !options.levels) {
      const double look = std::max(1.0, rows.entries()) * static_cast<double>(kalman_.shape.rank + 1);
      const double most_work = rows.is_sparse() ? most_work_sparse : most_work_dense;
      refiner_options_.most_looks = static_cast<Index>(most_work / look);
    }
  }

  RefineResult<Scalar> run() {
    if (kept_.count() < fewest_rows && !options_.exact_weights) return {};
    // That it takes to get anywhere.
    const Index fewest_looks = options_.solver == Solver::variational ? 12 : 60;
    if (refiner_options_.most_looks < fewest_looks) {
      result_.takes_too_long = true;
      return std::move(result_);
    }
    const std::vector<double> scales = options_.exact_weights
                                           ? weighted_scales(kept_.view(kalman_.shape.dim, kalman_.shape.left_dim))
                                           : one_pass_.scales();
    const std::optional<Refined> best = fit_scaled(scales);
    result_.interrupted = is_interrupted();
    if (result_.interrupted || !best) return std::move(result_);
    KalmanFilter<Scalar> filter = filter_of(*best, scales);
    if (filter.is_finite()) result_.filter.emplace(std::move(filter));
    return std::move(result_);
  }

 private:
  /// The fit to the rows with features of scale 1, in the units of the rows.
  std::optional<Refined> fit_scaled(const std::vector<double>& scales) {
    const ScaledRows<Scalar> scale(kept_, scales, kalman_.shape.left_dim);
    std::optional<ScaledRows<Scalar>> validation_scale;
    if (validation_ != nullptr) validation_scale.emplace(*validation_, one_pass_.scales(), kalman_.shape.left_dim);
    rows_.emplace(kept_.view(kalman_.shape.dim, kalman_.shape.left_dim));
    std::optional<Refined> best;
    if (options_.levels) {
      best = fit_all(*options_.levels, scale);
    } else if (validation_ != nullptr) {
      std::vector<Fold> folds(1);
      folds[0].held_out = validation_;
      folds[0].start = start(scale);
      folds[0].noise = one_pass_.noise_variance();
      folds[0].rows.emplace(*rows_);
      best = choose(folds, true);
    } else if (std::optional<Refined> exact = met_exactly(scale); exact) {
      best = std::move(exact);
    } else {
      std::vector<Fold> folds = make_folds(scale);
      if (folds.empty())
        result_.levels = level_without_folds;
      else if (!is_interrupted())  // otherwise folds may have no start
        choose(folds, false);
      folds.clear();
      turn_of_ = {};
      if (result_.levels > 0 && !is_interrupted()) best = fit_all(result_.levels, scale);
    }
    rows_.reset();
    if (best) best->beliefs = rescaled(std::move(best->beliefs), scale.inverse_scales());
    return best;
  }

  /// To go on with, in the units of the rows.
  KalmanFilter<Scalar> filter_of(const Refined& found, const std::vector<double>& scales) {
    const Rows<Scalar> rows = kept_.view(kalman_.shape.dim, kalman_.shape.left_dim);
    double count = 0;
    for (Index i = 0; i < rows.count(); ++i)
      count += options_.exact_weights ? static_cast<double>(rows.weight(i)) : 1.0;
    if (found.has_variances())
      return KalmanFilter<Scalar>(kalman_, one_pass_.first_prior(), found.beliefs.template cast<Scalar>(), scales,
                                  found.noise_variance, count);
    const SignedFactors<Scalar> means = found.beliefs.means.template cast<Scalar>();
    const auto with_noise = [&](double noise) {
      return KalmanFilter<Scalar>(kalman_, one_pass_.first_prior(), means, scales, noise, count, rows);
    };
    // What was fitted with few rows for each unknown says little about the noise. What held-out rows are off by is
    // noise and what the parameters leave open, together.
    constexpr double many = 10;
    const double off = held_out_squares_.value_or(one_pass_.noise_variance());
    if (count >= many * static_cast<double>(kalman_.shape.unknowns()) || off <= found.noise_variance)
      return with_noise(found.noise_variance);
    std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
    std::vector<Scalar> variances(predictions.size());
    with_noise(off).predict(rows, predictions, variances);
    double open = 0;
    for (const Scalar variance : variances) open += static_cast<double>(variance) / static_cast<double>(rows.count());
    return with_noise(std::max(found.noise_variance, off * off / (off + open)));
  }

  /// A part of the rows to learn from, and another to judge by.
  struct Fold {
    std::optional<Rows<Scalar>> rows;
    Index count = 0;
    KeptRows<Scalar> own_held_out;
    KeptRows<Scalar>* held_out = nullptr;
    Beliefs<double> start;
    double noise = 1;
    std::unique_ptr<Refiner> refiner;
  };

  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }

  std::vector<Fold> make_folds(const ScaledRows<Scalar>& scale) {
    const bool is_few = kept_.count() < few_rows;
    const int turns = is_few && kalman_.shape.dim * (kalman_.shape.rank + 2) < most_numbers ? turns_of_few : 1;
    const double share = is_few ? 1.0 / turns_of_few : held_out_share;
    turn_of_.resize(static_cast<std::size_t>(kept_.count()));
    Random random(options_.seed, start_stream - 1);
    for (std::uint8_t& turn : turn_of_) turn = static_cast<std::uint8_t>(random.uniform() / share);
    if (options_.exact_weights && !take_turns_by_content()) return {};
    std::vector<Fold> folds(static_cast<std::size_t>(turns));
    for (int turn = 0; turn < turns; ++turn) {
      Fold& fold = folds[static_cast<std::size_t>(turn)];
      const auto own = static_cast<std::uint8_t>(turn);
      if (kept_.is_on_disk()) fold.own_held_out.move_to_disk(kept_.folder());
      fold.own_held_out.append(rows_->only(turn_of_, own), kalman_.shape.left_dim);
      fold.held_out = &fold.own_held_out;
      fold.rows.emplace(rows_->without(turn_of_, own));
      if (options_.exact_weights)
        fold.start = start_of_moments(*fold.rows);
      else
        pass_over(fold, scale);
    }
    return folds;
  }

  /// The same row is held out as a whole, however often it is there. False where a turn would have no rows.
  bool take_turns_by_content() {
    std::array<Index, turns_of_few> rows_of{};
    for (Index i = 0; i < rows_->count(); ++i) {
      const auto turn = static_cast<std::uint8_t>(fingerprint(*rows_, i) % turns_of_few);
      turn_of_[static_cast<std::size_t>(i)] = turn;
      ++rows_of[turn];
    }
    return std::count(rows_of.begin(), rows_of.end(), 0) == 0;
  }

  /// For all rows.
  [[nodiscard]] Beliefs<double> start(const ScaledRows<Scalar>& scale) const {
    return options_.exact_weights ? start_of_moments(*rows_)
                                  : rescaled(one_pass_.beliefs().template cast<double>(), scale.scales());
  }

  /// A start that does not depend on the order of the rows.
  [[nodiscard]] Beliefs<double> start_of_moments(const Rows<Scalar>& rows) const {
    const NewtonOptions options = newton_options(kalman_);
    const MomentStart moments = moment_start(rows, options, workers_);
    return {
        moments.take(options, options.shape.positive ? options.shape.rank : moments.positive_count(options.shape.rank)),
        {}};
  }

  /// What one pass makes of the fold's rows. Where no more than priors raced, the best of them need not race again.
  void pass_over(Fold& fold, const ScaledRows<Scalar>& scale) {
    const Rows<Scalar>& rows = *fold.rows;
    const auto take = [&](const KalmanFilter<Scalar>& filter) {
      fold.start = filter.beliefs().template cast<double>();
      fold.noise = filter.noise_variance();
    };
    result_.row_reads += rows.count();
    if (learner_.options().moment) {
      StreamOptions options = learner_.options();
      options.standardised = true;
      StreamLearner<Scalar> again(std::move(options));
      in_parts(rows, [&](const Rows<Scalar>& part, std::span<Scalar> predictions) { again.learn(part, predictions); });
      if (is_interrupted()) return;
      again.stop_keeping();
      result_.row_reads += again.extra_row_reads();
      return take(again.filter());
    }
    KalmanFilter<Scalar> filter(kalman_, one_pass_.first_prior(), std::max(one_pass_.noise_variance(), 1e-12));
    for (Index j = 0; j < kalman_.shape.dim; ++j)
      if (scale.scales()[static_cast<std::size_t>(j)] > 0) filter.begin(j, 1);
    in_parts(rows, [&](const Rows<Scalar>& part, std::span<Scalar> predictions) { filter.learn(part, predictions); });
    take(filter);
  }

  /// As a stream would deliver them; an interruption does not wait for all.
  template <typename Learn>
  void in_parts(const Rows<Scalar>& rows, Learn&& learn) const {
    constexpr double entries_at_once = 1 << 20;  // 0.2 s for nine filters of rank 8
    const double entries_of_row = std::max(1.0, kept_.entries() / static_cast<double>(kept_.count()));
    const Index at_once = std::clamp<Index>(static_cast<Index>(entries_at_once / entries_of_row), 1, 8192);
    std::vector<Scalar> predictions(static_cast<std::size_t>(std::min(at_once, rows.count())));
    for (Index first = 0; first < rows.count() && !is_interrupted(); first += at_once) {
      const Index count = std::min(at_once, rows.count() - first);
      learn(rows.slice(first, count), std::span(predictions).first(static_cast<std::size_t>(count)));
    }
  }

  [[nodiscard]] double held_out_loss(std::vector<Fold>& folds) {
    double sum = 0;
    double weight = 0;
    double observed = 0;
    squares_ = 0;
    result_.held_out_rows = 0;
    for (Fold& fold : folds) {
      const Rows<Scalar> held_out = fold.held_out->view(kalman_.shape.dim, kalman_.shape.left_dim);
      const SignedFactors<Scalar> parameters =
          (fold.refiner ? fold.refiner->parameters() : fold.start.means).template cast<Scalar>();
      std::vector<Scalar> predictions(static_cast<std::size_t>(held_out.count()));
      workers_.split(held_out.count(), [&](int, Share share) {
        parameters.predict(held_out.slice(share.first, share.count),
                           std::span(predictions)
                               .subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.count)));
      });
      for (Index i = 0; i < held_out.count(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto own = static_cast<double>(held_out.weight(i));
        const auto y = static_cast<double>(held_out.targets()[at]);
        const auto f = static_cast<double>(predictions[at]);
        sum += own * options_.loss(y, f);
        squares_ += own * (y - f) * (y - f);
        weight += own;
        observed += own * kalman_.likelihood->observed(y);
      }
      result_.held_out_rows += held_out.count();
    }
    squares_ /= weight;
    held_out_weight_ = weight;
    constant_loss_ = kalman_.likelihood->constant_score(observed / weight, 0);
    return sum / weight;
  }

  /// The level at which the held-out rows are predicted best. `keep`: what was found there, too.
  std::optional<Refined> choose(std::vector<Fold>& folds, bool keep) {
    const std::size_t patience = options_.solver == Solver::variational ? 3 : 2;
    LevelChoice choice(held_out_loss(folds), patience, options_.may_decline);
    result_.one_pass = result_.refined = choice.one_pass();
    report(RefineStep{"one pass", std::numeric_limits<double>::quiet_NaN(), choice.one_pass(), false});
    if (is_bounded_) refiner_options_.most_looks /= static_cast<Index>(folds.size());
    for (Fold& fold : folds) {
      fold.count = fold.rows->count();
      fold.refiner = make_refiner(*fold.rows, refiner_options_, std::move(fold.start), fold.noise, workers_);
    }
    std::optional<Refined> best;
    for (Index level = 1; level <= most_levels; ++level) {
      bool has_next = true;
      for (Fold& fold : folds)
        has_next = has_next && fold.refiner->advance([&] {
          if (folds.size() == 1 && options_.solver == Solver::newton) report_step(*fold.refiner, false);
        });
      if (!has_next) break;
      const double loss = held_out_loss(folds);
      report(RefineStep{folds.front().refiner->level(), objective_of(folds), loss, false});
      if (choice.add(loss)) {
        held_out_squares_ = squares_;
        result_.level = folds.front().refiner->level();
        if (keep) best = folds.front().refiner->result();
      }
      if (!choice.goes_on()) break;
    }
    result_.refined = choice.best_loss();
    result_.levels = choice.best();
    if (kalman_.likelihood->is_classification())
      result_.gain_over_constant = held_out_weight_ * (constant_loss_ - choice.best_loss());
    for (const Fold& fold : folds) result_.row_reads += fold.refiner->looks() * fold.count;
    if (options_.exact_weights) result_.held_out_rows = 0;  // one pass had no part in it
    return best;
  }

  [[nodiscard]] double objective_of(const std::vector<Fold>& folds) const {
    if (!options_.progress) return 0;
    double sum = 0;
    for (const Fold& fold : folds) sum += fold.refiner->objective();
    return sum / static_cast<double>(folds.size());
  }

  /// Measurements without noise, if there are enough of them: no row has to be held out to know.
  std::optional<Refined> met_exactly(const ScaledRows<Scalar>& scale) {
    if (kalman_.shape.linear) return std::nullopt;
    const auto refiner = make_refiner(*rows_, refiner_options_, start(scale), one_pass_.noise_variance(), workers_);
    const bool has_level = refiner->advance([&] { report_step(*refiner, true); });
    result_.row_reads += refiner->looks() * rows_->count();
    if (!has_level || !refiner->is_exact()) return std::nullopt;
    result_.levels = 1;
    result_.level = refiner->level();
    return refiner->result();
  }

  std::optional<Refined> fit_all(Index levels, const ScaledRows<Scalar>& scale) {
    refiner_options_.most_looks = std::numeric_limits<Index>::max();
    const auto refiner = make_refiner(*rows_, refiner_options_, start(scale), one_pass_.noise_variance(), workers_);
    result_.levels = 0;
    while (result_.levels < levels && refiner->advance([&] { report_step(*refiner, true); })) ++result_.levels;
    if (options_.exact_weights) refiner->polish();
    result_.row_reads += refiner->looks() * rows_->count();
    result_.level = refiner->level();
    if (is_interrupted() || result_.levels == 0) return std::nullopt;
    return refiner->result();
  }

  void report(const RefineStep& step) const {
    if (options_.progress) options_.progress(step);
  }
  void report_step(const Refiner& refiner, bool is_refit) const {
    if (!options_.progress) return;
    report(RefineStep{refiner.level(), refiner.objective(), std::numeric_limits<double>::quiet_NaN(), is_refit});
  }

  const StreamLearner<Scalar>& learner_;
  const KalmanFilter<Scalar>& one_pass_;
  KeptRows<Scalar>& kept_;
  KeptRows<Scalar>* validation_;
  const RefineOptions& options_;
  Workers& workers_;
  KalmanOptions kalman_;
  RefinerOptions refiner_options_;
  bool is_bounded_ = false;  ///< may not take as long as it likes
  std::optional<Rows<Scalar>> rows_;
  std::vector<std::uint8_t> turn_of_;  ///< in which each row is held out
  double squares_ = 0;                 ///< mean of the held-out rows, as they were last predicted
  double held_out_weight_ = 0;
  double constant_loss_ = 0;                ///< classes: mean log-loss of the best constant on the held-out rows
  std::optional<double> held_out_squares_;  ///< at the best level
  RefineResult<Scalar> result_;
};

}  // namespace

template <typename Scalar>
RefineResult<Scalar> refine(const StreamLearner<Scalar>& learner, KeptRows<Scalar>& rows, KeptRows<Scalar>* validation,
                            const RefineOptions& options, Workers& workers) {
  return Refinement<Scalar>(learner, rows, validation, options, workers).run();
}

template RefineResult<float> refine(const StreamLearner<float>&, KeptRows<float>&, KeptRows<float>*,
                                    const RefineOptions&, Workers&);
template RefineResult<double> refine(const StreamLearner<double>&, KeptRows<double>&, KeptRows<double>*,
                                     const RefineOptions&, Workers&);

}  // namespace dyad
