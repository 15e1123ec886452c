#include "training/multi_pass/level_selection.h"

#include "training/multi_pass/early_stopping.h"

namespace dyad {
namespace {

/// Maximum number of variational sweeps. The regularization path of Gauss-Newton has at most 12 levels. Sensitivity:
/// docs/constants.md.
constexpr Index max_regularization_levels = 200;
/// EarlyStopping: number of levels over which the loss must decrease. Sensitivity: docs/constants.md.
constexpr std::size_t variational_patience = 3;
constexpr std::size_t newton_patience = 2;  // sensitivity: docs/constants.md

}  // namespace

template <typename Scalar>
SelectedLevel select_level(const MultiPassContext<Scalar>& context, HeldOutFolds<Scalar>& folds,
                           const MultiPassSolverOptions& options, bool needs_fit, MultiPassResult<Scalar>& result) {
  const std::size_t patience = options.solver == Solver::variational ? variational_patience : newton_patience;
  HeldOutLoss held_out = folds.evaluate();
  EarlyStopping stopping(held_out.loss, patience, context.options.can_select_one_pass);
  result.one_pass = stopping.one_pass_loss();
  context.report({"one pass", std::numeric_limits<double>::quiet_NaN(), stopping.one_pass_loss(), false});
  folds.make_solvers(options);
  SelectedLevel selected;
  while (stopping.level() < max_regularization_levels && folds.advance()) {
    held_out = folds.evaluate();
    context.report(
        {folds.first_solver().level(), context.options.progress ? folds.objective() : 0, held_out.loss, false});
    if (stopping.add(held_out.loss)) {
      selected.mean_squared_residual = held_out.mean_squared_residual;
      result.level = folds.first_solver().level();
      if (needs_fit) selected.fit = folds.first_solver().result();
    }
    if (!stopping.should_continue()) break;
  }
  result.multi_pass = stopping.best_loss();
  result.levels = stopping.best();
  if (context.kalman().likelihood->is_classification())
    result.gain_over_constant = held_out.weight * (held_out.constant_loss - stopping.best_loss());
  // With exact weights the folds start from moments instead of one pass, so that `result.one_pass` is not the loss of
  // one pass. 0 rows mark both losses as not available.
  result.held_out_rows = context.options.has_exact_weights ? 0 : held_out.rows;
  return selected;
}

template SelectedLevel select_level(const MultiPassContext<float>&, HeldOutFolds<float>&, const MultiPassSolverOptions&,
                                    bool, MultiPassResult<float>&);
template SelectedLevel select_level(const MultiPassContext<double>&, HeldOutFolds<double>&,
                                    const MultiPassSolverOptions&, bool, MultiPassResult<double>&);

}  // namespace dyad
