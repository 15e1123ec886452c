#pragma once

#include <vector>

#include <dyad/model.h>
#include <dyad/rows.h>

#include "base/linear_algebra.h"
#include "base/workers.h"

namespace dyad {

/// The whole interface between data and the moment solver. With the residual r = y - f(x) of a model, and a probe Z:
///   p0 = sum r     p1 = sum r x     G = sum r x (x'Z)
/// They add over rows, threads, processes and machines.
template <typename Scalar>
struct MomentSums {
  MomentSums(Index dim, Index probes) : moments(Tall<Scalar>::Zero(dim, probes + 1)) {}

  Index rows = 0;
  double p0 = 0;
  double residual_squares = 0;
  Tall<Scalar> moments;  ///< [G, p1] in one matrix, because one product fills it

  [[nodiscard]] auto G() const { return moments.leftCols(moments.cols() - 1); }
  [[nodiscard]] auto p1() const { return moments.col(moments.cols() - 1); }
  [[nodiscard]] bool is_finite() const;

  MomentSums& operator+=(const MomentSums& other);
};

/// dM Z = (G - p0 Z) / (2n), Gaussian features: E[r xx']/2 = dM + E[r] I/2.
template <typename Scalar>
Tall<Scalar> interaction_change(const MomentSums<Scalar>& sums, const Eigen::Ref<const Tall<Scalar>>& Z);

/// Reads blocks of rows with all workers, each adding to sums of its own.
template <typename Scalar>
class MomentAccumulator {
 public:
  /// Sums of the residual of `model`, which must not have seen the rows, against `probe`.
  MomentAccumulator(Workers& workers, const Model<Scalar>& model, const Eigen::Ref<const Tall<Scalar>>& probe);

  void add(const Rows<Scalar>& rows);
  [[nodiscard]] MomentSums<Scalar> total() const;

 private:
  void add_part(const Rows<Scalar>& rows, MomentSums<Scalar>& sums) const;

  Workers& workers_;
  const Model<Scalar>& model_;
  Index probes_;
  bool probe_is_model_;     ///< Z = U: its projections are already there
  Tall<Scalar> projector_;  ///< [U, w] or [U, w, Z]
  std::vector<MomentSums<Scalar>> by_worker_;
};

}  // namespace dyad
