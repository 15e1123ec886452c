#pragma once

#include <span>
#include <vector>

#include <dyad/model.h>
#include <dyad/rows.h>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "linalg/matrix.h"
#include "model/sides.h"
#include "solvers/moment/feature_moments.h"

namespace dyad {

/// Sums over the rows of a batch, from which the moment solvers compute their updates. With the residual r = y - f(x)
/// of a model and a probe Z (a matrix with one row per feature):
///   p0 = sum r     p1 = sum r x     p2 = sum r x*x     G = sum r x (x'Z)
/// Bilinear rows [x, z]: G = sum r [x (z'Z_right); z (x'Z_left)]. Each term is multiplied by the weight of its row. The
/// sums are additive over rows, threads and machines.
template <typename Scalar>
struct MomentSums {
  /// Sums of no rows. `probes`: number of columns of Z.
  MomentSums(Index dim, Index probes, bool with_squares)
      : moments(RowMajorMatrix<Scalar>::Zero(dim, probes + 1)), p2(Vector<Scalar>::Zero(with_squares ? dim : 0)) {}

  Index rows = 0;                  ///< number of rows
  double weight = 0;               ///< sum of the row weights; the n of the formulas
  double p0 = 0;                   ///< sum r
  double residual_squares = 0;     ///< sum r^2
  RowMajorMatrix<Scalar> moments;  ///< [G, p1]; one matrix product computes both
  Vector<Scalar> p2;               ///< sum r x*x; empty if it is not collected

  [[nodiscard]] auto G() const { return moments.leftCols(moments.cols() - 1); }
  [[nodiscard]] auto p1() const { return moments.col(moments.cols() - 1); }
  [[nodiscard]] bool is_finite() const;

  template <typename To>
  [[nodiscard]] MomentSums<To> cast() const {
    MomentSums<To> result(0, 0, false);
    result.rows = rows;
    result.weight = weight;
    result.p0 = p0;
    result.residual_squares = residual_squares;
    result.moments = moments.template cast<To>();
    result.p2 = p2.template cast<To>();
    return result;
  }

  MomentSums& operator+=(const MomentSums& other);
  void grow(const FeatureGrowth& growth);
  void archive(Archive& archive, Index dim, Index probes);
};

/// Sums that are collected in addition to p0, p1 and G.
struct OptionalSums {
  bool squares = false;   ///< p2
  bool features = false;  ///< FeatureMoments
};

/// Computes MomentSums over blocks of rows. Each thread of the pool adds to its own sums. Does not own the pool and the
/// model; the caller keeps them alive. Not thread-safe.
template <typename Scalar>
class MomentAccumulator {
 public:
  /// `model`: the sums contain its residuals; for unbiased estimates it must not have been fitted to the rows. `probe`:
  /// Z; it is copied. Z = U is detected by the address of `model.factors`, and then computed without extra work.
  MomentAccumulator(ThreadPool& pool, const Model<Scalar>& model, const Eigen::Ref<const RowMajorMatrix<Scalar>>& probe,
                    OptionalSums collect = {});

  /// Adds rows. Writes y - f(x) of each row to `residuals` if that is not empty. Throws std::invalid_argument for rows
  /// without targets, with another number of features, or with values that are not finite.
  void add(const Rows<Scalar>& rows, std::span<Scalar> residuals = {});
  /// Adds rows with `targets`, one per row, in place of their own.
  void add_with_targets(const Rows<Scalar>& rows, std::span<const Scalar> targets, std::span<Scalar> residuals = {});
  /// Inserts zeros for new features, after the model has grown. The probe must be the factors of the model.
  void grow(const FeatureGrowth& growth);
  /// Replaces the sums of the first thread; those of the other threads must be 0.
  void restore(const MomentSums<Scalar>& sums, const FeatureMoments& features);
  /// Sum of the row weights.
  [[nodiscard]] double weight() const;
  /// Sums over all threads.
  [[nodiscard]] MomentSums<Scalar> total() const;
  [[nodiscard]] FeatureMoments features() const;

 private:
  struct WorkerSums {
    MomentSums<Scalar> sums;
    FeatureMoments features;
  };
  void fill_projector(const Eigen::Ref<const RowMajorMatrix<Scalar>>& probe);
  void add_slice(const Rows<Scalar>& rows, std::span<const Scalar> targets, std::span<Scalar> residuals,
                 WorkerSums& worker) const;

  ThreadPool& pool_;
  const Model<Scalar>& model_;
  Sides sides_;
  Index probes_;
  OptionalSums collect_;
  bool probe_is_factors_;             ///< Z = U: the forward pass computes the projections
  RowMajorMatrix<Scalar> projector_;  ///< [U, w] or [U, w, Z]
  std::vector<WorkerSums> worker_sums_;
};

}  // namespace dyad
