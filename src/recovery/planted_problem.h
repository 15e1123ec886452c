#pragma once

#include <dyad/model.h>
#include <dyad/planted.h>

#include "base/random.h"
#include "base/thread_pool.h"
#include "data/row_block.h"
#include "linalg/matrix.h"

namespace dyad {

/// A stream of rows with a known answer. Row i depends on the seed and on i alone, and is made when it is asked for.
class PlantedProblem {
 public:
  explicit PlantedProblem(const PlantedOptions& options);

  [[nodiscard]] const PlantedOptions& options() const { return options_; }

  /// b*, w* and the rank-k part of M*.
  [[nodiscard]] const Model<double>& truth() const { return truth_; }

  /// Fills the block with the rows [first, first + count).
  template <typename Scalar>
  void read(Index first, Index count, ThreadPool& pool, DenseBlock<Scalar>& block) const;

 private:
  void draw_features(Random& random, Eigen::RowVectorXd& x) const;
  [[nodiscard]] double target(const Eigen::RowVectorXd& x) const;
  [[nodiscard]] double residual(const Eigen::RowVectorXd& x, const Eigen::RowVectorXd& Lx,
                                const Eigen::RowVectorXd& Rx) const;

  PlantedOptions options_;
  Model<double> truth_;
  Index right_first_;              ///< bilinear: where z begins; symmetric: 0, for z is x
  Eigen::ArrayXd residual_signs_;  ///< M* beyond rank k is residual (I - UU') diag(signs) (I - VV')
};

}  // namespace dyad
