#include "training/multi_pass/level_selection.h"

#include "training/multi_pass/level_choice.h"

namespace dyad {

template <typename Scalar>
SelectedLevel select_level(const RefineContext<Scalar>& context, HeldOutFolds<Scalar>& folds,
                           const MultiPassSolverOptions& options, bool keeps_fit, RefineResult<Scalar>& result) {
  constexpr Index max_levels = 200;
  const std::size_t patience = options.solver == Solver::variational ? 3 : 2;
  HeldOutLoss held_out = folds.evaluate();
  LevelChoice choice(held_out.loss, patience, context.options.may_decline);
  result.one_pass = choice.one_pass();
  context.report({"one pass", std::numeric_limits<double>::quiet_NaN(), choice.one_pass(), false});
  folds.make_solvers(options);
  SelectedLevel selected;
  while (choice.level() < max_levels && folds.advance()) {
    held_out = folds.evaluate();
    context.report({folds.first().level(), context.options.progress ? folds.objective() : 0, held_out.loss, false});
    if (choice.add(held_out.loss)) {
      selected.squares = held_out.squares;
      result.level = folds.first().level();
      if (keeps_fit) selected.fit = folds.first().result();
    }
    if (!choice.goes_on()) break;
  }
  result.refined = choice.best_loss();
  result.levels = choice.best();
  if (context.kalman().likelihood->is_classification())
    result.gain_over_constant = held_out.weight * (held_out.constant_loss - choice.best_loss());
  result.held_out_rows = context.options.exact_weights ? 0 : held_out.rows;  // 0: one pass was not evaluated
  return selected;
}

template SelectedLevel select_level(const RefineContext<float>&, HeldOutFolds<float>&, const MultiPassSolverOptions&,
                                    bool, RefineResult<float>&);
template SelectedLevel select_level(const RefineContext<double>&, HeldOutFolds<double>&, const MultiPassSolverOptions&,
                                    bool, RefineResult<double>&);

}  // namespace dyad
