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

/// The whole interface between data and the moment solver. With the residual r = y - f(x) of a model, and a probe Z:
///   p0 = sum r     p1 = sum r x     p2 = sum r x*x     G = sum r x (x'Z)
/// Bilinear rows [x, z]: G = sum r [x (z'Z_right), z (x'Z_left)], one above the other.
/// They add over rows, threads, processes and machines.
template <typename Scalar>
struct MomentSums {
  MomentSums(Index dim, Index probes, bool with_squares)
      : moments(Tall<Scalar>::Zero(dim, probes + 1)), p2(Vector<Scalar>::Zero(with_squares ? dim : 0)) {}

  Index rows = 0;
  double weight = 0;  ///< of the rows: each counts 1 unless it says otherwise
  double p0 = 0;
  double residual_squares = 0;
  Tall<Scalar> moments;  ///< [G, p1] in one matrix, because one product fills it
  Vector<Scalar> p2;     ///< empty unless it is collected

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
  void grow(const Growth& growth);
  void archive(Archive& archive, Index dim, Index probes);
};

/// What to sum besides p0, p1 and G.
struct Collect {
  bool squares = false;   ///< p2
  bool features = false;  ///< the moments of the features themselves
};

/// Reads blocks of rows with all threads, each adding to sums of its own.
template <typename Scalar>
class MomentAccumulator {
 public:
  /// Sums of the residual of `model`, which must not have seen the rows, against `probe`.
  MomentAccumulator(ThreadPool& pool, const Model<Scalar>& model, const Eigen::Ref<const Tall<Scalar>>& probe,
                    Collect collect = {});

  /// Writes y - f(x) for each row to `residuals`, unless that is empty.
  void add(const Rows<Scalar>& rows, std::span<Scalar> residuals = {});
  /// The model, which is also the probe, has grown; the sums grow with it.
  void grow(const Growth& growth);
  /// Continues from sums of an earlier run.
  void restore(const MomentSums<Scalar>& sums, const FeatureMoments& features);
  [[nodiscard]] double weight() const;
  [[nodiscard]] MomentSums<Scalar> total() const;
  [[nodiscard]] FeatureMoments features() const;

 private:
  struct OfOneWorker {
    MomentSums<Scalar> sums;
    FeatureMoments features;
  };
  void fill_projector(const Eigen::Ref<const Tall<Scalar>>& probe);
  void add_part(const Rows<Scalar>& rows, std::span<Scalar> residuals, OfOneWorker& own) const;

  ThreadPool& pool_;
  const Model<Scalar>& model_;
  Sides sides_;
  Index probes_;
  Collect collect_;
  bool probe_is_model_;     ///< Z = U: its projections are already there
  Tall<Scalar> projector_;  ///< [U, w] or [U, w, Z]
  std::vector<OfOneWorker> by_worker_;
};

}  // namespace dyad
