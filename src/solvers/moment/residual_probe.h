#pragma once

#include <optional>
#include <span>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "solvers/moment/change_estimator.h"
#include "solvers/moment/moment_sums.h"

namespace dyad {

/// Search for an eigenvector of the true M that a model lacks, in the residuals r of its predictions. A window of n
/// rows has a probe Z with m orthonormal columns. ChangeEstimator estimates dM Z with dM = M_true - M from the moments
/// of the window; for Gaussian features, the estimate is (sum r x (x'Z) - Z sum r) / (2n). The result of a window is
/// the eigenpair (l, z) of dM in the span of Z with the largest |l| (Ritz pair), if it is significant. An orthonormal
/// basis of dM Z is the probe of the next window (subspace iteration). For bilinear models, l is a singular value and z
/// the pair of its singular vectors.
///
/// Significance: if the residuals are noise of variance s2, Z'(dM Z) has approximately Gaussian entries, with a
/// standard deviation of sqrt(s2 / n) / 2 (diagonal: times sqrt(2); bilinear: all entries sqrt(s2 / n)). |l| then
/// exceeds sqrt(s2 / n) / 2 (2 sqrt(m) + t) (bilinear: twice this) with a probability of at most 2 exp(-t^2 / 4), by
/// Gaussian concentration of the norm (Davidson and Szarek, 2001, "Local operator theory, random matrices and Banach
/// spaces").
///
/// Windows become longer while r^2 does not decrease, so that weak directions are found in noise. The model may change
/// within a window, as a filter does after each row. Features must be independent with mean 0 and variance 1. Memory:
/// O(rank * dim) per thread. Does not own the pool; the caller keeps it alive. Not thread-safe and not movable.
template <typename Scalar>
class ResidualProbe {
 public:
  /// Term l zz' of dM.
  struct MissedDirection {
    double value = 0;              ///< l
    Vector<double> vector;         ///< z, of length 1; bilinear: left above right vector, each of length 1
    double residual_variance = 0;  ///< mean r^2 of the window
    double explained_share = 0;    ///< variance of l (z'x)^2, divided by residual_variance
  };

  /// The first probe is random and depends on `options.seed`. `options.threads` has no effect.
  ResidualProbe(const MomentOptions& options, ThreadPool& pool);
  ResidualProbe(const ResidualProbe&) = delete;
  ResidualProbe& operator=(const ResidualProbe&) = delete;
  ~ResidualProbe() = default;

  /// Number of rows until the end of the window.
  [[nodiscard]] Index rows_until_decision() const { return window_rows_ - rows_; }

  /// Adds at most rows_until_decision() rows. `residuals`: target minus prediction of each row, before it was learned.
  void add(const Rows<Scalar>& rows, std::span<const Scalar> residuals);

  /// Ends the window. Returns the Ritz pair if it is significant.
  std::optional<MissedDirection> finish_window();

  /// Saves or loads the state. If the training state has none, loading keeps the initial state. Saving discards the
  /// rows of a window whose sums have overflowed.
  void archive(Archive& archive);

 private:
  [[nodiscard]] Index probes() const { return probe_.rank(); }
  [[nodiscard]] Index min_window_rows() const;
  MomentAccumulator<Scalar>& window();
  void set_next_window(double residual_variance);
  [[nodiscard]] MissedDirection leading_ritz_pair(const RowMajorMatrix<double>& Z,
                                                  const RowMajorMatrix<double>& dM_Z) const;

  Index rank_;  ///< of the model
  ThreadPool& pool_;
  Sides sides_;
  ChangeEstimator estimator_;
  Model<Scalar> probe_;  ///< Z as the factors of a model whose predictions are 0
  Index window_rows_;
  Index rows_ = 0;                                   ///< rows in the current window
  double last_variance_ = 0;                         ///< mean r^2 of the window of the last decrease; 0: none
  Index stationary_rows_ = 0;                        ///< rows since the last decrease of the mean r^2
  std::optional<MomentAccumulator<Scalar>> window_;  ///< sums of the current window; empty: no rows
};

/// The model with the best rank-k approximation of M + l zz' in place of M. `positive`: of the positive semidefinite
/// matrices.
template <typename Scalar>
Model<Scalar> add_direction(const Model<Scalar>& model,
                            const typename ResidualProbe<Scalar>::MissedDirection& direction, bool positive);

}  // namespace dyad
