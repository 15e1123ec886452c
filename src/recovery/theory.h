#pragma once

#include <dyad/recover.h>

#include "base/thread_pool.h"

namespace dyad {

/// Measures the constants of the paper's proof (Lin and Ye, 2016) on one batch: the shifted CI-RIP constant and delta
/// of the estimation sequence lemma. Bounds the errors after an update from this batch by the recursion lemma. `model`:
/// the model before the update; `before`: its errors. Reads the batch once for each product with a thin matrix.
TheoryPoint measure_theory(const Model<double>& model, const Model<double>& truth, const RecoveryPoint& before,
                           const Batch<double>& batch, ThreadPool& pool);

}  // namespace dyad
