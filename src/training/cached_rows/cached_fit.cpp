#include "training/cached_rows/cached_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/gauss_newton/moment_start.h"
#include "solvers/irls/log_det_irls.h"
#include "solvers/irls/matrix_free_irls.h"
#include "solvers/reflections/reflections.h"
#include "training/cached_rows/residual_structure.h"
#include "training/cached_rows/residuals.h"
#include "training/cached_rows/robust_fit.h"

namespace dyad {
namespace {

/// Rows per unknown from which the first candidate of a solver suffices: without noise, 10 of 10 fits succeed at 1.5
/// for the condition numbers 1, 5 and 100 (docs/method.md).
constexpr double rows_per_unknown_of_one_candidate = 1.5;
/// Rows per unknown from which the spectral start of the reflections suffices with noise as well (docs/method.md).
constexpr double rows_per_unknown_of_spectral_start = 3;
/// Limit of the candidates of dense IRLS. At 1.1 rows per unknown and condition number 1000, 10 of 10 fits succeed
/// within it.
constexpr Index max_dense_candidates = 24;
/// Limit of the sum of n^3 over the iterations of dense IRLS: 1,850 iterations for 600 rows, 46 for 2,048.
constexpr double max_dense_work = 4e11;
/// Rows per unknown from which residuals show outliers: fits with fewer rows interpolate some of them.
constexpr double min_rows_per_unknown_of_outliers = 2;
/// Reflections of a brief search, from a spectral start.
constexpr Index brief_reflections = 150;
/// Passes of Gauss-Newton after the reflections of a brief search. A start close to a solution needs fewer.
constexpr Index brief_passes = 100;
/// Rounds of reflections of a thorough search. The number of reflections to convergence is heavy-tailed
/// (docs/method.md).
constexpr Index first_round_reflections = 2000;
constexpr Index reflection_growth = 12;
constexpr Index reflection_rounds = 3;
/// Starts of the reflections of a thorough search, which share the products with the rows.
constexpr Index parallel_reflections = 4;
/// Limit of the multiplications of all reflections, about 15 s on one core.
constexpr double max_reflection_work = 3e10;

/// Sign of all targets: 1 or -1; 0 if both signs occur.
double common_sign(const ObservedRows& rows) {
  bool has_positive = false;
  bool has_negative = false;
  for (Index i = 0; i < rows.count(); ++i) {
    if (!(rows.weights()[i] > 0)) continue;
    has_positive = has_positive || rows.targets()[i] > 0;
    has_negative = has_negative || rows.targets()[i] < 0;
  }
  return has_positive == has_negative ? 0 : has_positive ? 1 : -1;
}

/// Number of rows of positive weight.
Index count_rows(const ObservedRows& rows) { return (rows.weights().array() > 0).count(); }

/// The eigendecomposition of the second moments takes as long as about d data passes for rank 1. Measurements of many
/// features are solved in fewer passes without it.
NewtonOptions select_preconditioner(NewtonOptions options) {
  constexpr Index max_decomposed_features = 128;
  if (options.shape.is_measurement() && options.shape.dim > max_decomposed_features)
    options.has_moment_preconditioner = false;
  return options;
}

/// Generates starts and keeps the best fit. Does not own its arguments.
class FitSearch {
 public:
  FitSearch(const ObservedRows& rows, const NewtonOptions& options, StartSearch search, ThreadPool& pool)
      : rows_(rows),
        options_(select_preconditioner(options)),
        search_(search),
        pool_(pool),
        solver_(rows, options_, pool) {
    rows_per_unknown_ =
        static_cast<double>(count_rows(rows)) / std::max(1.0, static_cast<double>(options.shape.unknowns()));
  }

  /// Fits from `start`, or from the moments if it is null.
  void fit_from(const SignedFactors<double>* start) {
    NewtonFit fit = fit_gauss_newton(solver_, start != nullptr ? *start : compute_start());
    ++starts_;
    const bool is_better = fit.is_exact || fit.mean_squared_residual < best_.mean_squared_residual;
    if (starts_ == 1 || (fit.is_finite && (is_better || !best_.is_finite))) best_ = std::move(fit);
  }

  void run() {
    if (search_ != StartSearch::none && !is_done()) search();
    // The solvers of measurements return no candidate if all rows are zero, for example.
    if (starts_ == 0) fit_from(nullptr);
  }

  void search() {
    const bool is_brief = search_ == StartSearch::brief || rows_per_unknown_ >= rows_per_unknown_of_spectral_start;
    const double sign = options_.shape.positive ? 1 : common_sign(rows_);
    if (sign != 0 && Reflections::can_solve(rows_, options_.shape))
      reflections_.emplace(rows_, ReflectionOptions{options_.shape, sign, is_brief ? 1 : parallel_reflections,
                                                    options_.seed, options_.interrupted});
    const Index max_passes = options_.max_passes;
    if (reflections_ && search_ == StartSearch::brief)
      options_.max_passes = std::min(max_passes, solver_.passes() + brief_passes);
    if (reflections_) reflect(is_brief ? brief_reflections : first_round_reflections);
    options_.max_passes = max_passes;
    if (best_.is_exact && search_ == StartSearch::brief) {  // continues to rounding, without the limit
      const SignedFactors<double> start = best_.parameters;
      fit_from(&start);
    }
    // Targets of one sign do not imply a semidefinite M if the features have one sign, for example.
    if (is_done() || (reflections_ && is_brief && options_.shape.positive)) return;
    run_matrix_free_irls();
    if (is_done() || is_brief) return;
    std::optional<LogDetIrls> irls;
    if (LogDetIrls::can_solve(rows_, options_.shape))
      irls.emplace(rows_, IrlsOptions{options_.shape, options_.seed, options_.interrupted});
    const Index candidates = rows_per_unknown_ < rows_per_unknown_of_one_candidate ? max_dense_candidates : 1;
    Index reflections = first_round_reflections;
    for (Index i = 0; i < std::max(candidates, reflection_rounds - 1) && !is_done(); ++i) {
      if (reflections_ && i < reflection_rounds - 1) reflect(reflections *= reflection_growth);
      const double dense_work = irls ? static_cast<double>(irls->iterations()) * std::pow(rows_.count(), 3) : 0;
      if (is_done() || !irls || i >= candidates || dense_work > max_dense_work) continue;
      // Null if K is singular, as with repeated rows.
      if (const std::optional<SignedFactors<double>> start = irls->next_candidate()) fit_from(&*start);
    }
    if (irls) passes_ += irls->iterations();
  }

  /// Leaves local minima that lack a direction of M. While the residuals have a significant direction, or more than 30%
  /// of the variance of the targets, fits a model of rank k + 1 that contains it, and continues from its best rank-k
  /// part.
  void add_missing_directions() {
    constexpr int max_additions = 4;
    // Reflections with many rows do not end in such minima.
    const bool has_reliable_start =
        reflections_ && options_.shape.positive && rows_per_unknown_ >= rows_per_unknown_of_spectral_start;
    if (rows_per_unknown_ <= 1 || has_reliable_start || !best_.is_finite) return;
    for (int i = 0; i < max_additions && !is_done() && options_.shape.rank < options_.shape.max_rank(); ++i) {
      const Vector<double> residuals = compute_residuals(rows_, best_.parameters, pool_);
      const ResidualStructure structure =
          find_residual_structure(rows_, residuals, options_.shape, options_.seed, pool_);
      if (!structure.is_significant() && explains_targets()) return;
      if (options_.shape.positive && structure.eigenvalue < 0) return;
      NewtonOptions extended = options_;
      extended.shape.rank += 1;
      SignedFactors<double> start = best_.parameters;
      start.A.conservativeResize(Eigen::NoChange, extended.shape.rank);
      start.A.rightCols(1) = std::sqrt(std::abs(structure.eigenvalue)) * structure.direction;
      start.signs.conservativeResize(extended.shape.rank);
      start.signs[extended.shape.rank - 1] = !options_.shape.is_bilinear() && structure.eigenvalue < 0 ? -1 : 1;
      const NewtonFit larger = fit_gauss_newton(rows_, extended, pool_, &start);
      passes_ += larger.passes;
      const double before = best_.mean_squared_residual;
      const SignedFactors<double> truncated = truncate(larger.parameters);
      fit_from(&truncated);
      constexpr double min_decrease = 0.05;  // of the squared residuals: smaller than that of any missing direction
      if (!(best_.mean_squared_residual < (1 - min_decrease) * before)) return;
    }
  }

  [[nodiscard]] bool is_done() const { return best_.is_exact || (options_.interrupted && options_.interrupted()); }
  /// Whether there are enough rows for a reliable noise variance, and the best fit explains most of the variance of the
  /// targets with residuals of light tails.
  [[nodiscard]] bool is_plausible() const {
    return rows_per_unknown_ >= rows_per_unknown_of_spectral_start && explains_targets() &&
           !has_heavy_tails(compute_residuals(rows_, best_.parameters, pool_), rows_, options_.shape.unknowns());
  }
  [[nodiscard]] const NewtonFit& best() const { return best_; }
  [[nodiscard]] Index passes() const { return passes_ + solver_.passes(); }
  [[nodiscard]] Index starts() const { return starts_; }

 private:
  /// Whether the best fit leaves less than 30% of the variance of the targets.
  [[nodiscard]] bool explains_targets() const {
    constexpr double max_unexplained_share = 0.3;
    return best_.mean_squared_residual < max_unexplained_share * 2 * solver_.constant_loss();
  }

  [[nodiscard]] SignedFactors<double> compute_start() const {
    return compute_moment_start(rows_, options_, pool_).to_parameters(options_);
  }

  void reflect(Index iterations) {
    if (reflections_->has_converged()) return;
    const double work_per_iteration =
        2.0 * static_cast<double>(rows_.count() * rows_.dim() * options_.shape.rank * reflections_->starts());
    const double affordable = max_reflection_work / std::max(1.0, work_per_iteration);
    const Index before = reflections_->iterations();
    reflections_->run(std::min(iterations, static_cast<Index>(affordable) - before));
    passes_ += 2 * (reflections_->iterations() - before);
    const SignedFactors<double> start = reflections_->candidate();
    fit_from(&start);
  }

  /// Best approximation of rank k.
  [[nodiscard]] SignedFactors<double> truncate(const SignedFactors<double>& parameters) const {
    Model<double> model = parameters.model();  // spectrum by descending absolute value
    const Index k = options_.shape.rank;
    SignedFactors<double> result = parameters;
    result.A = as_row_major(model.factors, model.dim(), model.rank()).leftCols(k);
    result.A *= as_vector(model.spectrum).head(k).cwiseAbs().cwiseSqrt().asDiagonal();
    result.signs = as_vector(model.spectrum).head(k).unaryExpr([](double value) { return value < 0 ? -1.0 : 1.0; });
    return result;
  }

  void run_matrix_free_irls() {
    MatrixFreeIrls irls(rows_, {options_.shape, options_.seed, options_.interrupted}, pool_);
    while (!is_done()) {
      const std::optional<SignedFactors<double>> start = irls.next_candidate();
      if (!start) break;
      fit_from(&*start);
    }
    passes_ += irls.passes();
  }

  ObservedRows rows_;
  NewtonOptions options_;
  StartSearch search_;
  ThreadPool& pool_;
  LevenbergMarquardt solver_;
  double rows_per_unknown_ = 0;
  std::optional<Reflections> reflections_;
  NewtonFit best_;
  Index starts_ = 0;
  Index passes_ = 0;
};

/// Robust fit from a start that is computed from clipped targets; null if it does not separate outliers.
std::optional<RobustFit> fit_without_outliers(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                                              double least_squares_scale, Index& passes) {
  constexpr double max_scale_ratio = 0.7;  // of the robust scale to that of least squares
  FitSearch search(rows.with_targets(clip_targets(rows)), options, StartSearch::brief, pool);
  search.run();
  RobustFit fit = fit_robustly(rows, options, pool, search.best().parameters);
  passes += search.passes() + fit.passes;
  if (fit.scale > max_scale_ratio * least_squares_scale) return std::nullopt;
  const Vector<double> residuals = compute_residuals(rows, fit.parameters, pool);
  const Vector<double> weights = exclude_outliers(residuals, rows, options.shape.unknowns());
  return weights == rows.weights() ? std::nullopt : std::optional(std::move(fit));
}

}  // namespace

CachedFit fit_cached_rows(const ObservedRows& rows, const NewtonOptions& options, StartSearch search, ThreadPool& pool,
                          const SignedFactors<double>* warm_start) {
  FitSearch fits(rows, options, search, pool);
  if (warm_start != nullptr) fits.fit_from(warm_start);
  const bool needs_search = warm_start == nullptr || (search != StartSearch::none && !fits.is_plausible());
  if (fits.starts() == 0 || (!fits.is_done() && needs_search)) fits.run();
  if (search == StartSearch::thorough) fits.add_missing_directions();
  const NewtonFit& best = fits.best();
  CachedFit result;
  result.parameters = best.parameters;
  result.mean_squared_residual = best.mean_squared_residual;
  result.is_exact = best.is_exact;
  result.is_finite = best.is_finite;
  result.starts = fits.starts();
  result.passes = fits.passes();
  result.weights = rows.weights();
  const auto unknowns = static_cast<double>(options.shape.unknowns());
  const auto count = static_cast<double>(count_rows(rows));
  result.noise_variance = result.is_exact ? 0 : result.mean_squared_residual * count / std::max(1.0, count - unknowns);
  const bool can_have_outliers = search != StartSearch::none && !result.is_exact && result.is_finite &&
                                 count >= min_rows_per_unknown_of_outliers * unknowns &&
                                 options.likelihood->has_unit_curvature();
  if (!can_have_outliers) return result;
  const Vector<double> residuals = compute_residuals(rows, result.parameters, pool);
  if (!has_heavy_tails(residuals, rows, options.shape.unknowns())) return result;
  const double scale = compute_robust_scale(residuals, rows.weights(), options.shape.unknowns());
  if (std::optional<RobustFit> robust = fit_without_outliers(rows, options, pool, scale, result.passes)) {
    result.parameters = std::move(robust->parameters);
    result.weights = std::move(robust->weights);
    result.noise_variance = robust->scale * robust->scale;
    const Vector<double> kept = compute_residuals(rows, result.parameters, pool);
    result.mean_squared_residual = result.weights.dot(kept.cwiseAbs2()) / result.weights.sum();
  }
  return result;
}

}  // namespace dyad
