#pragma once

#include <dyad/model.h>
#include <dyad/simulate.h>

#include "base/random.h"
#include "base/thread_pool.h"
#include "data/row_block.h"
#include "linalg/matrix.h"

namespace dyad {

/// Synthetic recovery problem: a random model and an unlimited sequence of rows y = f(x) + noise. Row i is generated on
/// demand from the seed and i alone. Thread-safe.
class PlantedProblem {
 public:
  explicit PlantedProblem(const PlantedOptions& options);

  [[nodiscard]] const PlantedOptions& options() const { return options_; }

  /// The planted parameters b*, w* and the best rank-k approximation of M*.
  [[nodiscard]] const Model<double>& truth() const { return truth_; }

  /// (M* - M*_k) Z, the product of the residual spectrum with Z. Symmetric problems only.
  [[nodiscard]] RowMajorMatrix<double> residual_times(const RowMajorMatrix<double>& Z) const;

  /// Generates the rows [first, first + count).
  template <typename Scalar>
  void generate(Index first, Index count, ThreadPool& pool, DenseBlock<Scalar>& block) const;

 private:
  /// Fills x with independent features of mean 0 and variance 1.
  void draw_features(Random& random, Eigen::RowVectorXd& x) const;
  /// Standard deviation of the targets, estimated from 1,000 rows.
  [[nodiscard]] double estimate_target_deviation() const;
  /// Target without noise.
  [[nodiscard]] double target(const Eigen::RowVectorXd& x) const;
  /// x'Rz for the residual spectrum R = M* minus its rank-k part; Lx = x'U, Rx = z'V.
  [[nodiscard]] double residual_term(const Eigen::RowVectorXd& x, const Eigen::RowVectorXd& Lx,
                                     const Eigen::RowVectorXd& Rx) const;

  PlantedOptions options_;
  Model<double> truth_;
  Index right_first_;              ///< bilinear: index of the first feature of z; symmetric: 0, because z = x
  double outlier_size_ = 0;        ///< added to or subtracted from the targets of outliers
  Eigen::ArrayXd residual_signs_;  ///< R = residual (I - UU') diag(signs) (I - VV'); empty if R = 0
};

}  // namespace dyad
