#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <dyad/model.h>
#include <dyad/rows.h>
#include <dyad/shape.h>

namespace dyad {

/// What the solver takes for the third and fourth moments of the features, centred and scaled.
enum class Moments {
  automatic,  ///< estimated, unless the first batch looks Gaussian
  gaussian,   ///< 0 and 3, as in the paper
  estimated,  ///< from all rows so far
};

/// What the solver takes for the mean and variance of the features, which are independent.
enum class Standardise {
  no,      ///< 0 and 1
  scale,   ///< mean 0; the variance is estimated from all rows so far
  centre,  ///< both are estimated from all rows so far; sparse rows stay sparse
};

/// The moment solver of Lin and Ye (2016), "A Non-convex One-Pass Framework for Generalized Factorization Machine and
/// Rank-One Matrix Sensing". It has no step size and no d x d matrix.
struct MomentOptions {
  ModelShape shape{.intercept = false};
  Moments moments = Moments::automatic;
  Standardise standardise = Standardise::no;  ///< one-scan
  int threads = 0;                            ///< 0: all cores
  std::uint64_t seed = 1;                     ///< of the random start

  /// Throws std::invalid_argument with a sentence that says what is allowed.
  void validate() const;
};

/// What one batch told about the model that it was measured against, which had never seen it.
struct BatchReport {
  Index rows = 0;
  double residual_rms = 0;  ///< root mean square of y - f(x)
  bool accepted = false;    ///< false: the update was not finite, and the model is the one before it
};

/// The default update. Each row is read once and forgotten: observe any number of blocks, then update. Memory is
/// O(rank x dim) for each thread, whatever the size of the batch.
template <typename Scalar>
class OneScanSolver {
 public:
  /// Starts from random directions and no interactions.
  explicit OneScanSolver(const MomentOptions& options);

  /// Starts from a model with the shape that these options give and orthonormal factors.
  OneScanSolver(const MomentOptions& options, Model<Scalar> start);
  ~OneScanSolver();
  OneScanSolver(OneScanSolver&&) noexcept;
  OneScanSolver& operator=(OneScanSolver&&) noexcept;

  /// Adds the rows to the sums of the current batch. How the batch is cut into blocks does not matter. A block that is
  /// refused, for a NaN say, takes the rows observed since the last update with it; the model stays as it is.
  void observe(const Rows<Scalar>& rows);

  /// Ends the batch and makes the next model from its sums.
  BatchReport update();

  [[nodiscard]] const Model<Scalar>& model() const;

  /// Gaussian or estimated, once the first batch has decided; automatic before.
  [[nodiscard]] Moments moments() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Hands all rows of one batch, block by block, to the visitor; the same rows each time it is called.
template <typename Scalar>
using Batch = std::function<void(const std::function<void(const Rows<Scalar>&)>& visitor)>;

/// Algorithm 1 as printed. Its V step needs every batch a second time, and its truncated SVD start reads the first
/// batch several times.
template <typename Scalar>
class PaperSolver {
 public:
  explicit PaperSolver(const MomentOptions& options);
  ~PaperSolver();
  PaperSolver(PaperSolver&&) noexcept;
  PaperSolver& operator=(PaperSolver&&) noexcept;

  /// Makes the next estimate from rows that no earlier update has seen. The first call is the initialisation.
  BatchReport update(const Batch<Scalar>& batch);

  /// Whether the initialisation is done.
  [[nodiscard]] bool started() const;

  /// The rank-k part of (UV' + VU')/2, or UV' for bilinear measurements.
  [[nodiscard]] const Model<Scalar>& model() const;

  /// With all of (UV' + VU')/2: what the next residual is measured against.
  [[nodiscard]] const Model<Scalar>& full_model() const;

  /// Gaussian or estimated, once the first batch has decided; automatic before.
  [[nodiscard]] Moments moments() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class OneScanSolver<float>;
extern template class OneScanSolver<double>;
extern template class PaperSolver<float>;
extern template class PaperSolver<double>;

}  // namespace dyad
