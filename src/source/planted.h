#pragma once

#include <dyad/model.h>
#include <dyad/recover.h>

#include "base/linear_algebra.h"
#include "base/workers.h"
#include "rows/block.h"

namespace dyad {

/// A stream of rows with a known answer. Row i depends on the seed and on i alone, and is made when it is asked for.
class PlantedProblem {
 public:
  explicit PlantedProblem(const PlantedOptions& options);

  /// b*, w* and the rank-k part of M*.
  [[nodiscard]] const Model<double>& truth() const { return truth_; }

  /// Fills the block with the rows [first, first + count).
  template <typename Scalar>
  void read(Index first, Index count, Workers& workers, DenseBlock<Scalar>& block) const;

 private:
  [[nodiscard]] double target(const Eigen::RowVectorXd& x, double noise) const;

  PlantedOptions options_;
  Model<double> truth_;
  Tall<double> projector_;         ///< [U*, w*]
  Eigen::ArrayXd residual_signs_;  ///< M* beyond rank k is residual (I - UU') diag(signs) (I - UU')
};

}  // namespace dyad
