#include "training/multi_pass/refine.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "training/multi_pass/filter_from_fit.h"
#include "training/multi_pass/held_out_folds.h"
#include "training/multi_pass/level_selection.h"

namespace dyad {
namespace {

constexpr Index min_rows = 10;
constexpr Index level_without_folds = 2;
// Maximum number of multiplications of all passes over the rows. Both take about the same time.
constexpr double max_work_dense = 6e10;
constexpr double max_work_sparse = 6e9;

/// Root mean square of the non-zero values of each feature.
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

/// Fits to the cached rows with features of scale 1, in the units of the rows.
template <typename Scalar>
class ScaledFit {
 public:
  ScaledFit(const RefineContext<Scalar>& context, const std::vector<double>& scales, MultiPassSolverOptions options,
            RefineResult<Scalar>& result)
      : context_(context),
        scale_(context.rows, scales, context.kalman().shape.left_dim),
        rows_(context.view(context.rows)),
        options_(std::move(options)),
        result_(result) {}

  /// Nothing if one pass is better, or after an interruption.
  std::optional<Posterior<double>> run(RowCache<Scalar>* validation) {
    std::optional<Posterior<double>> best;
    if (context_.options.levels) {
      best = fit_all(*context_.options.levels);
    } else if (validation != nullptr) {
      const ScaledRows<Scalar> scaled(*validation, context_.one_pass().scales(), context_.kalman().shape.left_dim);
      HeldOutFolds<Scalar> folds(context_, rows_, start(), *validation);
      best = select(folds, true);
    } else if (best = fit_exactly(); !best) {
      if (select_on_folds() && !context_.is_interrupted()) best = fit_all(result_.levels);
    }
    return best ? std::optional(best->rescaled(scale_.inverse_scales())) : std::nullopt;
  }

  /// At the selected level; nothing if no rows were held out.
  [[nodiscard]] std::optional<double> held_out_squares() const { return held_out_squares_; }

 private:
  [[nodiscard]] Posterior<double> start() const {
    return context_.options.exact_weights
               ? moment_posterior(rows_, context_.kalman(), context_.pool)
               : context_.one_pass().posterior().template cast<double>().rescaled(scale_.scales());
  }

  /// False if one pass is better.
  bool select_on_folds() {
    HeldOutFolds<Scalar> folds(context_, rows_, scale_.scales());
    if (folds.empty())
      result_.levels = level_without_folds;
    else if (!context_.is_interrupted())  // else folds may have no start
      (void)select(folds, false);
    else
      result_.row_reads += folds.row_reads();
    return result_.levels > 0;
  }

  std::optional<Posterior<double>> select(HeldOutFolds<Scalar>& folds, bool keeps_fit) {
    MultiPassSolverOptions options = options_;
    if (options.max_passes < std::numeric_limits<Index>::max()) options.max_passes /= folds.count();
    SelectedLevel selected = select_level(context_, folds, options, keeps_fit, result_);
    held_out_squares_ = selected.squares;
    result_.row_reads += folds.row_reads();
    return std::move(selected.fit);
  }

  /// Measurements without noise, if there are enough of them, need no held-out rows.
  std::optional<Posterior<double>> fit_exactly() {
    if (context_.kalman().shape.linear) return std::nullopt;
    const auto pass_solver = make_multi_pass_solver(rows_, options_, start(), context_.pool);
    const bool has_level = pass_solver->advance([&] { context_.report(*pass_solver, true); });
    result_.row_reads += pass_solver->passes() * rows_.count();
    if (!has_level || !pass_solver->is_exact()) return std::nullopt;
    result_.levels = 1;
    result_.level = pass_solver->level();
    return pass_solver->result();
  }

  std::optional<Posterior<double>> fit_all(Index levels) {
    options_.max_passes = std::numeric_limits<Index>::max();
    const auto pass_solver = make_multi_pass_solver(rows_, options_, start(), context_.pool);
    result_.levels = 0;
    while (result_.levels < levels && pass_solver->advance([&] { context_.report(*pass_solver, true); }))
      ++result_.levels;
    if (context_.options.exact_weights) pass_solver->polish();
    result_.row_reads += pass_solver->passes() * rows_.count();
    result_.level = pass_solver->level();
    if (context_.is_interrupted() || result_.levels == 0) return std::nullopt;
    return pass_solver->result();
  }

  const RefineContext<Scalar>& context_;
  ScaledRows<Scalar> scale_;
  Rows<Scalar> rows_;
  MultiPassSolverOptions options_;
  RefineResult<Scalar>& result_;
  std::optional<double> held_out_squares_;
};

}  // namespace

template <typename Scalar>
RefineResult<Scalar> refine(const StreamLearner<Scalar>& learner, RowCache<Scalar>& rows, RowCache<Scalar>* validation,
                            const RefineOptions& options, ThreadPool& pool) {
  const RefineContext<Scalar> context{learner, rows, options, pool};
  RefineResult<Scalar> result;
  if (rows.count() < min_rows && !options.exact_weights) return result;
  MultiPassSolverOptions solver_options;
  solver_options.kalman = context.kalman();
  solver_options.solver = options.solver;
  solver_options.exact_steps = options.exact_weights;
  solver_options.interrupted = options.interrupted;
  if ((options.may_decline || options.exact_weights) && !options.levels) {
    const double pass = std::max(1.0, rows.entries()) * static_cast<double>(context.kalman().shape.rank + 1);
    solver_options.max_passes = static_cast<Index>((rows.is_sparse() ? max_work_sparse : max_work_dense) / pass);
  }
  const Index min_passes = options.solver == Solver::variational ? 12 : 60;  // below, no fit converges
  if (solver_options.max_passes < min_passes) {
    result.takes_too_long = true;
    return result;
  }
  const std::vector<double> scales =
      options.exact_weights ? weighted_scales(context.view(rows)) : context.one_pass().scales();
  std::optional<Posterior<double>> best;
  std::optional<double> held_out_squares;
  {
    ScaledFit<Scalar> fit(context, scales, std::move(solver_options), result);
    best = fit.run(validation);
    held_out_squares = fit.held_out_squares();
  }
  result.interrupted = context.is_interrupted();
  if (result.interrupted || !best) return result;
  KalmanFilter<Scalar> filter = filter_from_fit(context, *best, scales, held_out_squares);
  if (filter.is_finite()) result.filter.emplace(std::move(filter));
  return result;
}

template RefineResult<float> refine(const StreamLearner<float>&, RowCache<float>&, RowCache<float>*,
                                    const RefineOptions&, ThreadPool&);
template RefineResult<double> refine(const StreamLearner<double>&, RowCache<double>&, RowCache<double>*,
                                     const RefineOptions&, ThreadPool&);

}  // namespace dyad
