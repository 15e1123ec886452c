#pragma once

#include <cmath>

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "data/row_block.h"
#include "model/signed_factors.h"
#include "recovery/planted_problem.h"
#include "recovery/recovery_error.h"
#include "solvers/gauss_newton/newton_options.h"

namespace dyad::test {

/// Rows of a planted problem, with the model to estimate.
struct PlantedRows {
  PlantedRows(const PlantedOptions& options, double rows_per_unknown) : planted(options), pool(2) {
    newton.shape = options.shape();
    newton.seed = options.seed;
    const auto unknowns = static_cast<double>(newton.shape.unknowns());
    planted.generate(0, static_cast<Index>(std::ceil(rows_per_unknown * unknowns)), pool, block);
  }

  [[nodiscard]] ObservedRows observed() const { return block.view(); }
  /// |w - w*| + |M - M*|_2.
  [[nodiscard]] double error_of(const SignedFactors<double>& parameters) const {
    const Model<double> model = parameters.model();
    return (as_vector(model.weights) - as_vector(planted.truth().weights)).norm() +
           interaction_error(model, planted.truth());
  }

  PlantedProblem planted;
  ThreadPool pool;
  NewtonOptions newton;
  DenseBlock<double> block;
};

/// Problem of rank 2 (phase: 1) with 30 features; bilinear: 20 x 25.
inline PlantedOptions make_planted(Kind kind, double condition, std::uint64_t seed) {
  PlantedOptions problem;
  problem.kind = kind;
  problem.dim = kind == Kind::bilinear ? 20 : 30;
  if (kind == Kind::bilinear) problem.right_dim = 25;
  problem.rank = kind == Kind::phase ? 1 : 2;
  problem.condition = condition;
  problem.seed = seed;
  return problem;
}

}  // namespace dyad::test
