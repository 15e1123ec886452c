#pragma once

#include <dyad/recover.h>

#include "base/thread_pool.h"
#include "recovery/planted_problem.h"

namespace dyad {

/// Measures the constants of the paper's proof (Lin and Ye, 2016) on one batch: the shifted CI-RIP constant, delta of
/// the estimation sequence lemma, and the noise term r of the noisy case. Bounds the errors after an update from this
/// batch by the recursion lemma. `model`: the model before the update; `before`: its errors. Reads the batch once or
/// twice for each product with a thin matrix.
TheoryPoint measure_theory(const Model<double>& model, const PlantedProblem& problem, const RecoveryPoint& before,
                           const Batch<double>& batch, ThreadPool& pool);

/// Constants of the proof on one batch, from which the bounds follow.
struct ProofConstants {
  double sigma_1 = 0;     ///< largest absolute eigenvalue of M*
  double sigma_k = 0;     ///< k-th absolute eigenvalue of M*
  double sigma_next = 0;  ///< upper bound of the absolute eigenvalues of M* beyond the first k
  double delta = 0;       ///< of the estimation sequence lemma
  double noise = 0;       ///< r: norm of the part of the estimated change that is caused by noise and residual spectrum
};

/// Bounds of the recursion lemma and of the noisy theorem for an update from a model with errors `before`. The formulas
/// with sigma_next = 0 and r = 0 are those of the noise-free case.
TheoryPoint bound_errors(const ProofConstants& constants, const RecoveryPoint& before);

}  // namespace dyad
