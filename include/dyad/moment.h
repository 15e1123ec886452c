#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <dyad/model.h>
#include <dyad/rows.h>
#include <dyad/shape.h>

/// \file
/// The moment solvers of Lin and Ye (2016), "A Non-convex One-Pass Framework for Generalized Factorization Machine and
/// Rank-One Matrix Sensing". They have no step size and form no d x d matrix.

namespace dyad {

/// Assumed third and fourth moments of the standardized features.
enum class Moments {
  automatic,  ///< gaussian if skewness and kurtosis of the first batch agree with it, else estimated
  gaussian,   ///< 0 and 3, as in the paper
  estimated,  ///< running estimates from all rows
};

/// Assumed mean and variance of the features.
enum class Standardization {
  none,    ///< mean 0 and variance 1
  scale,   ///< mean 0; running estimate of the variance
  center,  ///< running estimates of mean and variance; sparse rows stay sparse
};

/// Options of the moment solvers.
struct MomentOptions {
  ModelShape shape{.intercept = false};                     ///< of the model
  Moments moments = Moments::automatic;                     ///< third and fourth moments
  Standardization standardization = Standardization::none;  ///< OneScanSolver only
  int threads = 0;                                          ///< 0: all cores
  std::uint64_t seed = 1;                                   ///< of the random start

  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

/// Result of one update. The residuals are those of the model before the update, which is independent of the batch.
struct BatchReport {
  Index rows = 0;            ///< number of rows in the batch
  double residual_rms = 0;   ///< root mean square of y - f(x)
  bool is_accepted = false;  ///< false: the update was not finite, and the model is unchanged
};

/// Moment solver that reads each row once: any number of calls of observe(), then one call of update(). Memory is
/// O(rank x dim) per thread for any size of the batch.
///
///     dyad::MomentOptions options;
///     options.shape.dim = 100;
///     dyad::OneScanSolver<double> solver(options);
///     for (const auto& batch : batches) {
///       solver.observe(batch);
///       solver.update();
///     }
///     const dyad::Model<double>& model = solver.model();
template <typename Scalar>
class OneScanSolver {
 public:
  /// Starts from random orthonormal factors and a zero spectrum.
  /// \throws std::invalid_argument for invalid options
  explicit OneScanSolver(const MomentOptions& options);

  /// Starts from a model of the shape `options.shape` with orthonormal factors.
  /// \throws std::invalid_argument for invalid options, or if the shapes disagree
  OneScanSolver(const MomentOptions& options, Model<Scalar> start);
  ~OneScanSolver();
  OneScanSolver(OneScanSolver&&) noexcept;             ///< moves the solver
  OneScanSolver& operator=(OneScanSolver&&) noexcept;  ///< moves the solver

  /// Adds the rows to the sums of the current batch. The result does not depend on the division of a batch into blocks,
  /// up to rounding. Complexity: O(rank) per non-zero.
  /// \throws std::invalid_argument if a value is not finite; the rows observed since the last update are then
  ///         discarded, and the model is unchanged
  void observe(const Rows<Scalar>& rows);

  /// Ends the batch and computes the next model from its sums, in O(rank^2 x dim).
  BatchReport update();

  /// The current model.
  [[nodiscard]] const Model<Scalar>& model() const;

  /// The moments in use: gaussian or estimated after the first batch, `MomentOptions::moments` before.
  [[nodiscard]] Moments moments() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Batch of rows that can be read several times. Each call passes the same rows, block by block, to the visitor.
template <typename Scalar>
using Batch = std::function<void(const std::function<void(const Rows<Scalar>&)>& visitor)>;

/// Algorithm 1 of Lin and Ye (2016) as printed. The V step reads each batch a second time. The initialization by a
/// truncated SVD reads the first batch several times.
template <typename Scalar>
class PaperSolver {
 public:
  /// \throws std::invalid_argument for invalid options
  explicit PaperSolver(const MomentOptions& options);
  ~PaperSolver();
  PaperSolver(PaperSolver&&) noexcept;             ///< moves the solver
  PaperSolver& operator=(PaperSolver&&) noexcept;  ///< moves the solver

  /// Computes the next estimate from a batch. The proof requires rows that are independent of all previous batches. The
  /// first call is the initialization.
  BatchReport update(const Batch<Scalar>& batch);

  /// True after the initialization.
  [[nodiscard]] bool has_started() const;

  /// The model with the best rank-k approximation of M = (UV' + VU')/2; bilinear: M = UV'.
  [[nodiscard]] const Model<Scalar>& model() const;

  /// The model with M = (UV' + VU')/2 of rank up to 2k, from which the next residuals are computed.
  [[nodiscard]] const Model<Scalar>& full_model() const;

  /// The moments in use: gaussian or estimated after the first batch, `MomentOptions::moments` before.
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
