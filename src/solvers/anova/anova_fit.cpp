#include "solvers/anova/anova_fit.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "solvers/anova/model_assembly.h"
#include "solvers/anova/pair_candidates.h"
#include "solvers/anova/response.h"
#include "solvers/anova/terms.h"
#include "solvers/anova/variance_function.h"

namespace dyad {
namespace {

/// Limit on the total number of coefficients of all pairs.
constexpr Index max_pair_knots = 2000;
/// Limit on the number of coefficients of one pair.
constexpr Index max_knots_per_pair = 512;
constexpr Index max_rounds = 6;
/// Smallest gain in evidence of a pair or a finer grid.
constexpr double min_gain_nats = 5;
/// Rounds end if the candidates together gain less than this number of nats per row.
constexpr double min_gain_per_row = 0.0005;
/// Iterations of REML for the functions of single columns and after each round; the next round continues from its
/// result.
constexpr Index main_iterations = 12;
constexpr Index round_iterations = 4;
/// Steps of iteratively reweighted least squares, and iterations of REML in each of them (classes).
constexpr Index first_class_steps = 5;
constexpr Index round_class_steps = 2;
constexpr Index last_class_steps = 4;
constexpr Index class_iterations = 4;
/// Tables with more columns than this get a prior on the variances of single columns, because their maximum likelihood
/// estimates fit noise.
constexpr Index max_free_columns = 50;
/// VarianceBlock::Component::penalty of tables with at least `full_penalty_columns` columns; less in proportion to the
/// columns of smaller tables. Loss divided by that of the constant for 200 columns and 500 rows, mean of five data
/// sets, of noise and of eight weights and a sine: 1.008 and 0.700 at 0.75, 1.005 and 0.703 at 1, 1.002 and 0.713
/// at 1.5, 1.000 and 0.757 at 2.5.
constexpr double max_penalty = 1;
constexpr double full_penalty_columns = 200;
/// Rows of the fit of the variance function; their leverages take p^2 / 2 multiply-adds per row. Tables with more rows
/// are not fitted again with weights.
constexpr Index max_residual_rows = 4096;
/// The variance of the noise is constant for fewer rows.
constexpr Index min_residual_rows = 30;
/// Iterations of REML with weights; they start at the variances without weights.
constexpr Index reweighted_iterations = 3;
/// VarianceOptions::max_growth of these iterations.
constexpr double reweighted_growth = 2;

class Fit {
 public:
  Fit(const ColumnTable& table, std::span<const double> targets, std::span<const double> weights,
      const AnovaOptions& options, ThreadPool& pool)
      : options_(options),
        pool_(pool),
        table_(table),
        axes_(table, weights),
        sums_(pool),
        response_(targets, weights, options) {
    for (Index j = 0; j < static_cast<Index>(table.columns.size()); ++j)
      if (axes_.distribution(j).is_variable()) columns_.push_back(j);
    for (std::size_t a = 0; a < columns_.size(); ++a)
      for (std::size_t b = a + 1; b < columns_.size(); ++b) pairs_.emplace_back(columns_[a], columns_[b]);
    const auto count = static_cast<double>(columns_.size());
    if (columns_.size() > max_free_columns)
      penalty_ = std::min(max_penalty, max_penalty * count / full_penalty_columns);
    const auto pairs = static_cast<double>(std::max<std::size_t>(1, pairs_.size()));
    // The largest of N gains of pairs without effect is about log N.
    min_gain_ = std::max(min_gain_nats, 2 + std::log(pairs));
    coarse_knots_ = static_cast<Index>(std::clamp(std::sqrt(max_pair_knots / pairs), 6.0, 10.0));
  }

  AnovaFit run() {
    fit_main_effects();
    report("columns");
    if (options_.has_curves) {
      for (Index round = 0; round < max_rounds && !was_interrupted(); ++round)
        if (!add_round(round)) break;
    }
    if (!was_interrupted()) add_tied_pairs();
    if (!was_interrupted()) finish_response();
    AnovaFit result = make_result();
    if (!options_.is_classification && !result.was_interrupted) fit_noise(result);
    return result;
  }

 private:
  [[nodiscard]] bool was_interrupted() const { return options_.interrupted && options_.interrupted(); }
  void fit_main_effects() {
    for (const Index column : columns_) {
      auto term = std::make_unique<Term>(axes_.get_main(column));
      if (options_.has_curves)
        term->set_kernels(term->default_kernels());
      else
        term->set_straight_kernels();
      for (TermKernel& kernel : term->kernels) {
        kernel.theta = response_.prior_variance() /
                       static_cast<double>(columns_.size() * std::max<std::size_t>(1, term->kernels.size()));
        kernel.penalty = kernel.tie >= 0 ? 0 : penalty_;
      }
      terms_.push_back(std::move(term));
    }
    main_count_ = terms_.size();
    solve(main_iterations, {}, first_class_steps, false);
  }

  /// Estimates the variances and solves for the coefficients. `kept`: indices of the first terms in the last call.
  /// Steps for classes behind the first one keep the weights and with them the Gram matrix, if `reuses_gram`.
  void solve(Index iterations, const std::vector<Index>& kept, Index class_steps, bool reuses_gram) {
    if (!options_.is_classification) {
      response_.update(predictor_);
      sums_.update(terms_, kept, response_.rows());
      return estimate(iterations);
    }
    for (Index step = 0; step < class_steps; ++step) {
      const bool keeps_weights = step > 0 && reuses_gram;
      response_.update(predictor_, keeps_weights);
      if (!keeps_weights) sums_.update(terms_, {}, response_.rows());
      estimate(class_iterations);
      if (was_interrupted()) return;
    }
  }

  void estimate(Index iterations, double max_growth = VarianceOptions().max_growth) {
    sums_.update_targets(terms_, response_.rows());
    std::vector<VarianceBlock> blocks = make_variance_blocks(terms_, sums_.offsets());
    VarianceOptions options = make_variance_options(options_, response_.prior_variance());
    options.max_iterations = iterations;
    options.max_growth = max_growth;
    fit_ = estimate_variances(sums_.sums(), blocks, noise_variance_, options);
    noise_variance_ = fit_.noise_variance;
    set_variances(blocks, terms_);
    intercept_ = response_.rows().mean - sums_.centers().dot(fit_.gamma);
    update_fitted();
  }

  /// Values of all functions for all rows.
  void update_fitted() {
    const std::size_t count = response_.rows().z.size();
    std::atomic<std::size_t> next{0};
    pool_.run([&](int) {
      for (std::size_t t = next++; t < terms_.size(); t = next++) {
        Term& term = *terms_[t];
        term.values = term.basis * fit_.gamma.segment(sums_.offsets()[t], term.basis.cols());
        term.fitted.assign(count, 0.0);
        add_fitted(term.rows(), term.values, term.fitted);
      }
    });
    predictor_.assign(count, intercept_);
    for (const auto& term : terms_)
      for (std::size_t i = 0; i < count; ++i) predictor_[i] += term->fitted[i];
  }

  /// Residuals of the working responses times the weights, optionally with a function of the model added back.
  [[nodiscard]] std::vector<double> weighted_residuals(const Term* added) const {
    const WorkingRows& rows = response_.rows();
    std::vector<double> residuals(rows.z.size());
    double sum = 0;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      residuals[i] = rows.z[i] - predictor_[i] + (added != nullptr ? added->fitted[i] : 0);
      sum += rows.weight(i) * residuals[i];
    }
    for (std::size_t i = 0; i < residuals.size(); ++i)
      residuals[i] = rows.weight(i) * (residuals[i] - sum / rows.total_weight);
    return residuals;
  }

  /// Adds the candidates of a round with the largest gains. Returns false if there are none.
  bool add_round(Index round) {
    response_.update(predictor_);
    const Index limit = std::max<Index>(8, static_cast<Index>(columns_.size())) << round;
    std::vector<Candidate> candidates = screen_pairs(limit);
    for (Candidate& finer : screen_finer_grids()) candidates.push_back(std::move(finer));
    if (was_interrupted()) return false;
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.gain_per_knot > b.gain_per_knot; });
    double total = 0;
    for (const Candidate& candidate : candidates) total += candidate.gain.nats;
    if (total < min_gain_per_row * response_.rows().total_weight) return false;
    std::vector<std::unique_ptr<Term>> added;
    std::set<Index> replaced;
    for (Index c = 0; c < std::min<Index>(limit, std::ssize(candidates)); ++c) {
      Candidate& candidate = candidates[static_cast<std::size_t>(c)];
      if (candidate.added_knots > max_pair_knots - pair_knots_) continue;
      pair_knots_ += candidate.added_knots;
      set_prior(candidate);
      if (candidate.replaced >= 0) replaced.insert(candidate.replaced);
      added.push_back(std::move(candidate.term));
    }
    if (added.empty()) return false;
    const auto refined = static_cast<Index>(replaced.size());
    const Index new_pairs = std::ssize(added) - refined;
    pair_count_ += new_pairs;
    replace_terms(replaced, std::move(added), round_iterations, round_class_steps);
    ++rounds_;
    report(fmt::format("round {}: {} pairs, {} finer grids", round + 1, new_pairs, refined));
    return true;
  }

  /// Starting variances of the kernels of a candidate.
  void set_prior(Candidate& candidate) {
    candidate.term->set_kernels(candidate.term->default_kernels());
    const double share = 1.0 / static_cast<double>(candidate.term->kernels.size());
    for (TermKernel& kernel : candidate.term->kernels) {
      kernel.penalty = penalty_;
      if (candidate.replaced < 0) {
        kernel.theta = std::max(candidate.gain.theta, 1e-3 * noise_variance_) * share;
        continue;
      }
      kernel.theta = 1e-3 * noise_variance_ * share;
      for (const TermKernel& old : terms_[static_cast<std::size_t>(candidate.replaced)]->kernels)
        if (old.kernel == kernel.kernel) kernel.theta = std::max(kernel.theta, old.theta);
    }
  }

  /// Removes replaced terms, appends new ones and solves.
  void replace_terms(const std::set<Index>& replaced, std::vector<std::unique_ptr<Term>> added, Index iterations,
                     Index class_steps) {
    std::vector<Index> kept;
    std::vector<std::unique_ptr<Term>> terms;
    for (Index t = 0; t < std::ssize(terms_); ++t)
      if (!replaced.contains(t)) {
        kept.push_back(t);
        terms.push_back(std::move(terms_[static_cast<std::size_t>(t)]));
      }
    for (auto& term : added) {
      std::erase(pairs_, term->columns());
      terms.push_back(std::move(term));
    }
    terms_ = std::move(terms);
    solve(iterations, kept, class_steps, true);
  }

  /// New pairs on the coarse grid whose gain exceeds the threshold. The gain of the pairs with the largest approximate
  /// gains is computed exactly.
  std::vector<Candidate> screen_pairs(Index limit) {
    const std::vector<double> residuals = weighted_residuals(nullptr);
    const ScreenRows rows{residuals, response_.rows().weights, noise_variance_};
    std::vector<std::unique_ptr<AxisSpectrum>> spectra(axes_size());
    for (const Index column : columns_)
      spectra[static_cast<std::size_t>(column)] =
          std::make_unique<AxisSpectrum>(axes_.get(column, coarse_knots_), response_.rows().weights);
    std::vector<std::pair<double, std::size_t>> order(pairs_.size());
    for_each_parallel(pairs_.size(), [&](std::size_t p) {
      const auto [i, j] = pairs_[p];
      const FittedAxis& first = axes_.get(i, coarse_knots_);
      const FittedAxis& second = axes_.get(j, coarse_knots_);
      order[p] = {
          AxisSpectrum::approximate_gain(*spectra[static_cast<std::size_t>(i)], *spectra[static_cast<std::size_t>(j)],
                                         {&first.hats, &second.hats, first.axis.size(), second.axis.size()}, rows)
              .nats,
          p};
    });
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    // The approximation ranks pairs; correlated columns change gains by a factor of about two.
    std::erase_if(order, [&](const auto& entry) { return entry.first < min_gain_ / 2; });
    order.resize(std::min(order.size(), static_cast<std::size_t>(2 * limit)));
    std::vector<Candidate> candidates(order.size());
    for_each_parallel(order.size(), [&](std::size_t c) {
      const auto [i, j] = pairs_[order[c].second];
      candidates[c] = evaluate_candidate(axes_, {i, j}, {coarse_knots_, coarse_knots_}, rows);
    });
    std::erase_if(candidates, [&](const Candidate& candidate) { return !(candidate.gain.nats > min_gain_); });
    return candidates;
  }

  /// For each chosen pair the finer grid with the largest gain per added coefficient, if it exceeds the threshold. The
  /// function of the pair is added back to the residuals, and the gain of the present grid is subtracted.
  std::vector<Candidate> screen_finer_grids() {
    for (std::size_t t = main_count_; t < terms_.size(); ++t)  // creates the axes before the threads read the cache
      for (const auto& knots : finer_grids(*terms_[t])) {
        axes_.get(terms_[t]->columns().first, knots.first);
        axes_.get(terms_[t]->columns().second, knots.second);
      }
    std::vector<Candidate> best(terms_.size() - main_count_);
    for_each_parallel(best.size(), [&](std::size_t b) {
      const std::size_t t = main_count_ + b;
      const Term& term = *terms_[t];
      const std::vector<double> residuals = weighted_residuals(&term);
      const ScreenRows rows{residuals, response_.rows().weights, noise_variance_};
      const PairKnotLimits limits{max_knots_per_pair, max_pair_knots - pair_knots_, min_gain_};
      best[b] = find_finer_grid(term, axes_, rows, limits);
      best[b].replaced = static_cast<Index>(t);
    });
    std::erase_if(best, [](const Candidate& candidate) { return candidate.term == nullptr; });
    return best;
  }

  /// Adds the remaining pairs on coarse grids with one variance per kernel, as far as the limit on coefficients allows.
  void add_tied_pairs() {
    if (pairs_.empty()) return;
    // The smallest grid with a curve has three knots per axis.
    constexpr Index min_knots = 3;
    const double room = static_cast<double>(max_pair_knots - pair_knots_) / static_cast<double>(pairs_.size());
    const Index knots = options_.has_curves
                            ? std::min(coarse_knots_, static_cast<Index>(std::sqrt(std::max(0.0, room))))
                            : (room >= 1 ? 2 : 0);
    if (options_.has_curves ? knots < min_knots : knots == 0) return;
    std::vector<std::unique_ptr<Term>> added;
    for (const auto& [i, j] : pairs_) {
      auto term = std::make_unique<Term>(axes_.get(i, knots), axes_.get(j, knots), std::pair{knots, knots});
      term->set_kernels(term->default_kernels());
      if (term->kernels.empty()) continue;
      for (TermKernel& kernel : term->kernels) {
        kernel.theta = 1e-2 * noise_variance_ / static_cast<double>(term->kernels.size());
        kernel.tie = static_cast<Index>(axis_kernel_count) * (1 + static_cast<Index>(kernel.kernel.first)) +
                     static_cast<Index>(*kernel.kernel.second);
      }
      added.push_back(std::move(term));
    }
    const auto count = std::ssize(added);
    if (count == 0) return;
    replace_terms({}, std::move(added), round_iterations, last_class_steps);
    report(fmt::format("{} pairs with shared variances", count));
  }

  /// Last steps for censored targets, which keep the Gram matrix.
  void finish_response() {
    if (!response_.is_censored()) return;
    constexpr Index censored_steps = 12;
    for (Index step = 0; step < censored_steps && !was_interrupted(); ++step) {
      response_.update(predictor_);
      estimate(step + 1 < censored_steps ? 1 : class_iterations);
    }
  }

  template <typename Task>
  void for_each_parallel(std::size_t count, Task&& task) {
    std::atomic<std::size_t> next{0};
    pool_.run([&](int) {
      for (std::size_t i = next++; i < count; i = next++)
        if (!was_interrupted()) task(i);
    });
  }

  [[nodiscard]] std::size_t axes_size() const {
    return columns_.empty() ? 0 : static_cast<std::size_t>(columns_.back()) + 1;
  }

  [[nodiscard]] double held_out() const { return held_out_loss(fit_, response_.rows().total_weight, options_); }

  void report(const std::string& round) const {
    if (options_.progress) options_.progress({round, fit_.log_evidence, held_out()});
  }

  AnovaFit make_result();
  /// Residuals of a sample of the rows. Censored targets beyond which the prediction lies have the residual 0.
  [[nodiscard]] ResidualRows residuals(const AnovaModel& model) const;
  /// Fits the variance of the noise as a function of the columns. If the leave-one-out loss of the fit with weights
  /// v(x)^-1/2 is smaller, it replaces the fit.
  void fit_noise(AnovaFit& result);

  const AnovaOptions& options_;
  ThreadPool& pool_;
  const ColumnTable& table_;
  AxisCache axes_;
  TermSums sums_;
  Response response_;
  std::vector<Index> columns_;                  ///< columns with more than one value
  std::vector<std::pair<Index, Index>> pairs_;  ///< pairs of columns without a term
  std::vector<std::unique_ptr<Term>> terms_;
  std::size_t main_count_ = 0;  ///< number of terms of single columns, which come first
  VarianceFit fit_;
  double noise_variance_ = response_.start_noise_variance();
  double intercept_ = 0;
  std::vector<double> predictor_ = response_.start_predictor();
  double penalty_ = 0;  ///< as VarianceComponent::penalty
  double min_gain_ = min_gain_nats;
  Index coarse_knots_ = 10;  ///< per axis of a new pair
  Index pair_knots_ = 0;     ///< coefficients of all pairs
  Index pair_count_ = 0;
  Index rounds_ = 0;
};

AnovaFit Fit::make_result() {
  AnovaFit result = assemble_fit(terms_, sums_.offsets(), sums_.sums(), sums_.centers(), fit_);
  result.held_out_loss = held_out();
  result.rounds = rounds_;
  result.pairs = pair_count_;
  result.was_interrupted = was_interrupted();
  result.prior.scale = response_.prior_variance();
  result.model.intercept = intercept_;
  result.model.posterior.noise_variance = options_.is_classification ? 0 : noise_variance_;
  result.model.posterior.intercept_variance = noise_variance_ / response_.rows().total_weight;
  return result;
}

ResidualRows Fit::residuals(const AnovaModel& model) const {
  // Rows for the leverages, which take p^2 / 2 multiply-adds per row. The error of a standard deviation is 1 / sqrt(2
  // n).
  const std::size_t total = predictor_.size();
  const std::size_t count = std::min(total, static_cast<std::size_t>(max_residual_rows));
  ResidualRows rows;
  rows.noise_variance = noise_variance_;
  for (const ColumnTable::Column& column : table_.columns) rows.table.columns.push_back({column.is_categorical, {}});
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = k * total / count;
    for (std::size_t c = 0; c < table_.columns.size(); ++c)
      rows.table.columns[c].values.push_back(table_.columns[c].values[i]);
    rows.predictions.push_back(predictor_[i]);
    rows.residuals.push_back(response_.rows().z[i] - predictor_[i]);
    rows.counts.push_back(response_.repetitions(i));
    rows.precisions.push_back(response_.precision(i));
  }
  rows.posterior_variances.resize(count);
  model.predict_variances(rows.table, rows.posterior_variances);
  return rows;
}

void Fit::fit_noise(AnovaFit& result) {
  if (table_.columns.empty()) return;
  ResidualRows rows = residuals(result.model);
  if (std::ssize(rows.residuals) < min_residual_rows) return;
  result.model.log_noise = fit_log_noise(rows, pool_);
  if (!result.model.log_noise.is_zero() && std::ssize(predictor_) <= max_residual_rows && !was_interrupted()) {
    std::vector<double> variances(predictor_.size());
    result.model.predict_noise(table_, variances);
    for (double& variance : variances) variance = 1 / std::sqrt(variance);
    response_.set_precisions(variances);
    double sum = 0;
    for (std::size_t i = 0; i < predictor_.size(); ++i)
      sum += response_.rows().weight(i) * std::pow(response_.rows().z[i] - predictor_[i], 2);
    noise_variance_ = sum / std::max(1.0, response_.rows().total_weight - 1 - fit_.effective_dof);
    sums_.update(terms_, {}, response_.rows());
    estimate(reweighted_iterations, reweighted_growth);
    AnovaFit reweighted = make_result();
    ResidualRows new_rows = residuals(reweighted.model);
    const double loss = new_rows.held_out_variance();
    if (loss < rows.held_out_variance()) {
      reweighted.held_out_loss = std::sqrt(loss);
      reweighted.model.posterior.noise_variance = result.model.posterior.noise_variance;
      reweighted.model.log_noise = std::move(result.model.log_noise);
      result = std::move(reweighted);
      rows = std::move(new_rows);
      if (options_.progress) options_.progress({"weights of rows", result.log_evidence, result.held_out_loss});
    }
  }
  std::vector<double> noise(rows.residuals.size());
  result.model.predict_noise(rows.table, noise);
  result.model.log_noise.intercept += std::log(calibration_factor(rows, noise));
}

}  // namespace

AnovaFit fit_anova(const ColumnTable& table, std::span<const double> targets, std::span<const double> weights,
                   const AnovaOptions& options, ThreadPool& pool) {
  return Fit(table, targets, weights, options, pool).run();
}

}  // namespace dyad
