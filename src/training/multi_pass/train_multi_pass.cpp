#include "training/multi_pass/train_multi_pass.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "training/cached_rows/cached_fit.h"
#include "training/multi_pass/filter_from_fit.h"
#include "training/multi_pass/held_out_folds.h"
#include "training/multi_pass/level_selection.h"
#include "training/multi_pass/sampling_fit.h"
#include "training/one_pass/buffered_start.h"

namespace dyad {
namespace {

/// Minimum number of rows. With fewer rows the five folds would hold out fewer than two rows each, on average.
/// Sensitivity: docs/constants.md.
constexpr Index min_rows = 10;
/// Lower bound of the noise variance of exact fits. For targets of size 1 the squares of double rounding errors are
/// about 1e-32.
constexpr double min_exact_noise_variance = 1e-30;
/// Number of levels if no rows are held out, because one of the folds would have no rows. Sensitivity:
/// docs/constants.md.
constexpr Index levels_without_folds = 2;
/// Maximum number of multiplications, summed over all passes. Sparse products have indirect accesses, so that both
/// limits take about the same time. Sensitivity: docs/constants.md.
constexpr double max_dense_work = 6e10;
constexpr double max_sparse_work = 6e9;  // sensitivity: docs/constants.md
/// Minimum number of passes within the work limit. Below it a fit does not converge, and training is not started.
constexpr Index min_variational_passes = 12;
constexpr Index min_newton_passes = 60;  // sensitivity: docs/constants.md

/// Weighted root mean square of the non-zero values of each feature; 0 for features without any.
template <typename Scalar>
std::vector<double> weighted_rms(const Rows<Scalar>& rows) {
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

/// Converts the factors of unknown features from the coordinates of `fit`, with M = A A', to those of the model, with
/// M = U diag(lambda) U': a becomes diag(1/lambda) U'A a. Bilinear models have no factors of unknown features.
template <typename Scalar>
void rotate_unknown_factors(const SignedFactors<double>& fit, const Model<Scalar>& model, SampledPosterior& posterior) {
  if (model.is_bilinear()) return;
  const Index rank = model.rank();
  const Vector<double> spectrum = as_vector(model.spectrum).template cast<double>();
  const Vector<double> inverse = spectrum.unaryExpr([](double lambda) { return lambda > 0 ? 1 / lambda : 0.0; });
  const RowMajorMatrix<double> U = as_row_major(model.factors, model.dim(), rank).template cast<double>();
  const Matrix<double> rotation = fit.A.transpose() * U * inverse.asDiagonal();
  auto unknown = as_row_major(posterior.unknown_factors, posterior.group_count(), rank);
  unknown = (unknown * rotation).eval();
}

/// Fit to the cached rows. The features are divided by their scales for the lifetime of this object; the result of
/// run() is in the units of the rows. Refers to the context and the result, which the caller keeps alive.
template <typename Scalar>
class ScaledFit {
 public:
  ScaledFit(const MultiPassContext<Scalar>& context, const std::vector<double>& scales, MultiPassSolverOptions options,
            MultiPassResult<Scalar>& result)
      : context_(context),
        scaling_(context.rows, scales, context.kalman().shape.left_dim),
        rows_(context.view(context.rows)),
        options_(std::move(options)),
        result_(result) {}

  /// Returns null if one pass is selected, or after an interruption. `validation`: as in train_multi_pass().
  std::optional<Posterior<double>> run(RowCache<Scalar>* validation) {
    std::optional<Posterior<double>> best;
    if (context_.options.levels) {
      best = fit_all_rows(*context_.options.levels);
    } else if (validation != nullptr) {
      const ScaledRows<Scalar> scaled(*validation, scaling_.scales(), context_.kalman().shape.left_dim);
      HeldOutFolds<Scalar> folds(context_, rows_, start(), *validation);
      best = select(folds, true);
    } else if (best = fit_exactly(); !best) {
      if (select_on_folds() && !context_.is_interrupted()) best = fit_all_rows(result_.levels);
    }
    return best ? std::optional(best->rescaled(scaling_.inverse_scales())) : std::nullopt;
  }

  /// Fit by sampling, in the units of the rows; null as for run().
  std::optional<SampledFit> sample(RowCache<Scalar>* validation) {
    std::optional<SampledFit> fit;
    if (validation != nullptr) {
      const ScaledRows<Scalar> scaled(*validation, scaling_.scales(), context_.kalman().shape.left_dim);
      HeldOutFolds<Scalar> folds(context_, rows_, start(), *validation);
      fit = fit_by_sampling(context_, rows_, folds, options_.max_passes, result_);
      result_.row_reads += folds.row_reads();
    } else {
      HeldOutFolds<Scalar> folds(context_, rows_, scaling_.scales());
      result_.row_reads += folds.row_reads();
      if (context_.is_interrupted()) return std::nullopt;
      fit = fit_by_sampling(context_, rows_, folds, options_.max_passes, result_);
      result_.fold_of = folds.fold_of();
      result_.folds = folds.count();
    }
    if (!fit) return std::nullopt;
    const std::vector<double>& inverse = scaling_.inverse_scales();
    fit->fit = fit->fit.rescaled(inverse);
    for (std::size_t j = 0; j < inverse.size(); ++j) fit->posterior.log_variances[j] *= inverse[j] * inverse[j];
    return fit;
  }

  /// Mean squared residual of held-out rows at the selected level; null if no rows were held out, or if one pass is
  /// selected.
  [[nodiscard]] std::optional<double> held_out_squared_residual() const { return held_out_squared_residual_; }

 private:
  /// Parameters from which a fit to all rows starts, for scaled features.
  [[nodiscard]] Posterior<double> start() const {
    return context_.options.has_exact_weights ? order_invariant_start(rows_, context_.kalman(), context_.pool)
                                              : balanced_posterior(context_.one_pass()).rescaled(scaling_.scales());
  }

  /// Selects the number of levels. Returns false if one pass is selected.
  bool select_on_folds() {
    HeldOutFolds<Scalar> folds(context_, rows_, scaling_.scales());
    if (folds.empty())
      result_.levels = levels_without_folds;
    else if (!context_.is_interrupted()) {  // after an interruption folds may have no start
      (void)select(folds, false);
      result_.fold_of = folds.fold_of();
      result_.folds = folds.count();
    } else
      result_.row_reads += folds.row_reads();
    return result_.levels > 0;
  }

  /// Selects the number of levels on the folds. Returns the fit of the first fold if `needs_fit`.
  std::optional<Posterior<double>> select(HeldOutFolds<Scalar>& folds, bool needs_fit) {
    MultiPassSolverOptions options = options_;
    if (options.max_passes < std::numeric_limits<Index>::max()) options.max_passes /= folds.count();
    SelectedLevel selected = select_level(context_, folds, options, needs_fit, result_);
    held_out_squared_residual_ = selected.mean_squared_residual;
    result_.row_reads += folds.row_reads();
    return std::move(selected.fit);
  }

  /// Fit of measurements (no linear term) or of dense rows of a bilinear model without noise. Null if the residuals are
  /// not of rounding size, or if there are not more rows than unknowns.
  std::optional<Posterior<double>> fit_exactly() {
    const ModelShape& shape = context_.kalman().shape;
    if (shape.is_bilinear()) return fit_bilinear_exactly();
    if (shape.linear) return std::nullopt;
    const auto solver = make_multi_pass_solver(rows_, options_, start(), context_.pool);
    const bool has_level = solver->advance([&] { context_.report(*solver, true); });
    result_.row_reads += solver->passes() * rows_.count();
    if (!has_level || !solver->has_exact_fit()) return std::nullopt;
    result_.levels = 1;
    result_.level = solver->level();
    return solver->result();
  }

  std::optional<Posterior<double>> fit_bilinear_exactly() {
    // From this number of rows per unknown on, the regularization path contains the exact fit.
    constexpr double max_rows_per_unknown = 10;
    const ModelShape& shape = context_.kalman().shape;
    const auto unknowns = static_cast<double>(shape.unknowns());
    const auto count = static_cast<double>(rows_.count());
    const bool is_possible = !context_.options.has_exact_weights && !rows_.is_sparse() &&
                             context_.kalman().likelihood->has_unit_curvature() && count > unknowns &&
                             count < max_rows_per_unknown * unknowns;
    if (!is_possible) return std::nullopt;
    NewtonOptions options = newton_options(context_.kalman());
    options.interrupted = options_.interrupted;
    const CachedFit fit = fit_cached_rows(rows_, options, StartSearch::brief, context_.pool);
    result_.row_reads += fit.passes * rows_.count();
    if (!fit.is_exact) return std::nullopt;
    result_.levels = 1;
    result_.level = "least squares";
    return Posterior<double>{fit.parameters, {}, min_exact_noise_variance};
  }

  /// Fit to all rows with a number of levels. Null after an interruption, or if there is no level.
  std::optional<Posterior<double>> fit_all_rows(Index levels) {
    options_.max_passes = std::numeric_limits<Index>::max();
    const auto solver = make_multi_pass_solver(rows_, options_, start(), context_.pool);
    result_.levels = 0;
    while (result_.levels < levels && solver->advance([&] { context_.report(*solver, true); })) ++result_.levels;
    if (context_.options.has_exact_weights) solver->polish();
    result_.row_reads += solver->passes() * rows_.count();
    result_.level = solver->level();
    if (context_.is_interrupted() || result_.levels == 0) return std::nullopt;
    return solver->result();
  }

  const MultiPassContext<Scalar>& context_;
  ScaledRows<Scalar> scaling_;  ///< restores the values of the rows on destruction
  Rows<Scalar> rows_;           ///< scaled rows
  MultiPassSolverOptions options_;
  MultiPassResult<Scalar>& result_;
  std::optional<double> held_out_squared_residual_;
};

}  // namespace

template <typename Scalar>
MultiPassResult<Scalar> train_multi_pass(const StreamLearner<Scalar>& learner, RowCache<Scalar>& rows,
                                         RowCache<Scalar>* validation, const MultiPassOptions& options,
                                         ThreadPool& pool) {
  const MultiPassContext<Scalar> context{learner, rows, options, pool};
  MultiPassResult<Scalar> result;
  if (rows.count() < min_rows && !options.has_exact_weights) return result;
  MultiPassSolverOptions solver_options;
  solver_options.kalman = context.kalman();
  solver_options.solver = options.solver;
  solver_options.exact_steps = options.has_exact_weights;
  solver_options.interrupted = options.interrupted;
  if ((options.can_select_one_pass || options.has_exact_weights) && !options.levels) {
    const double work_per_pass = std::max(1.0, rows.entries()) * static_cast<double>(context.kalman().shape.rank + 1);
    solver_options.max_passes =
        static_cast<Index>((rows.is_sparse() ? max_sparse_work : max_dense_work) / work_per_pass);
  }
  const Index min_passes = options.solver == Solver::sampling      ? min_sampling_sweeps
                           : options.solver == Solver::variational ? min_variational_passes
                                                                   : min_newton_passes;
  if (solver_options.max_passes < min_passes) {
    result.exceeds_work_limit = true;
    return result;
  }
  const std::vector<double> scales =
      options.has_exact_weights ? weighted_rms(context.view(rows)) : context.one_pass().scales();
  std::optional<Posterior<double>> best;
  std::optional<double> held_out_squared_residual;
  {
    ScaledFit<Scalar> fit(context, scales, std::move(solver_options), result);
    if (options.solver == Solver::sampling) {
      if (std::optional<SampledFit> sampled = fit.sample(validation)) {
        best = std::move(sampled->fit);
        held_out_squared_residual = best->noise_variance;  // not reduced by the fit
        result.sampled = std::move(sampled->posterior);
      }
    } else {
      best = fit.run(validation);
      held_out_squared_residual = fit.held_out_squared_residual();
    }
  }
  result.interrupted = context.is_interrupted();
  if ((result.interrupted && !result.sampled) || !best) return result;
  KalmanFilter<Scalar> filter = filter_from_fit(context, *best, scales, held_out_squared_residual);
  if (!filter.is_finite()) return result;
  if (result.sampled) rotate_unknown_factors(best->means, filter.model(), *result.sampled);
  result.filter.emplace(std::move(filter));
  return result;
}

template MultiPassResult<float> train_multi_pass(const StreamLearner<float>&, RowCache<float>&, RowCache<float>*,
                                                 const MultiPassOptions&, ThreadPool&);
template MultiPassResult<double> train_multi_pass(const StreamLearner<double>&, RowCache<double>&, RowCache<double>*,
                                                  const MultiPassOptions&, ThreadPool&);

}  // namespace dyad
