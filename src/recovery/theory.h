#pragma once

#include <dyad/recover.h>

#include "base/thread_pool.h"

namespace dyad {

/// Measures the constant of the estimation sequence lemma on one batch, and predicts by the recursion lemma what an
/// update from it may do at the most. `model` is the one before the update, `before` how far it is from the truth.
TheoryPoint measure_theory(const Model<double>& model, const Model<double>& truth, const RecoveryPoint& before,
                           const Batch<double>& batch, ThreadPool& pool);

}  // namespace dyad
