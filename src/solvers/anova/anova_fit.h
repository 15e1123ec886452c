#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "data/column_table.h"
#include "model/anova_model.h"
#include "solvers/anova/basis/kernels.h"

namespace dyad {

/// State of the fit after a round.
struct AnovaProgress {
  std::string round;
  double log_evidence = 0;
  double held_out = 0;  ///< estimated loss of other rows by generalized cross-validation, scaled target; classes: NaN
};

struct AnovaOptions {
  bool is_classification = false;  ///< targets are -1 and +1
  bool has_curves = true;          ///< false: weights, squares and products only
  std::optional<double> low;       ///< targets at or below are censored
  std::optional<double> high;      ///< targets at or above are censored
  std::function<void(const AnovaProgress&)> progress;
  std::function<bool()> interrupted;  ///< polled between iterations; true ends the fit after the last complete round
};

/// Prior of a fitted model, from which its coefficients and variances can be estimated again (fit_sums()).
struct AnovaPrior {
  /// A kernel of a block and its variance.
  struct Component {
    BlockKernel kernel;
    double theta = 0;    ///< prior variance
    Index tie = -1;      ///< kernels with the same non-negative number share one variance
    double penalty = 0;  ///< as VarianceBlock::Component::penalty
  };

  std::vector<Vector<double>> means;  ///< per axis: mean values of the basis functions, which center the kernels
  std::vector<std::vector<Component>> blocks;  ///< kernels of each block
  double scale = 1;                            ///< variance of the target, or that of log-odds
  double noise_variance = 1;                   ///< classes: 1

  /// Saves or loads the prior of the blocks of `model`.
  void archive(Archive& archive, const AnovaModel& model);
};

struct AnovaFit {
  AnovaModel model;
  AnovaPrior prior;
  double log_evidence = 0;
  double effective_dof = 0;  ///< of all functions
  double held_out_loss = 0;  ///< as AnovaProgress::held_out
  Index rounds = 0;
  Index pairs = 0;  ///< pairs with variances of their own
  bool was_interrupted = false;
};

/// Fits a smoothing-spline ANOVA model. The functions of single columns are fitted first. Rounds then add pairs of
/// columns, or refine the grids of chosen pairs, in the order of their gain in evidence per coefficient, and estimate
/// all variances again by REML. The remaining pairs share one variance per kernel. `weights`: repetition counts of the
/// rows; empty: 1. Requires at least one row.
AnovaFit fit_anova(const ColumnTable& table, std::span<const double> targets, std::span<const double> weights,
                   const AnovaOptions& options, ThreadPool& pool);

}  // namespace dyad
