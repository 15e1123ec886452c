#pragma once

#include <cstdint>

#include <dyad/model.h>

#include "base/archive.h"
#include "linalg/matrix.h"

namespace dyad {

/// Search for a start of phase retrieval, y = (a'x)^2, in one pass and without stored rows. Each row updates several
/// vectors z, which are random at first, by a relaxed Kaczmarz step towards the nearer solution of sqrt(y) = |z'x|:
///   z += relaxation (sign(z'x) sqrt(y) - z'x) x / |x|^2.
/// After about ten rows per feature, the best vector is close to a or -a. Reference: Tan and Vershynin (2019), "Phase
/// retrieval via randomized Kaczmarz: theoretical guarantees". Not thread-safe.
template <typename Scalar>
class PhaseSearch {
 public:
  /// `seed`: of the random initial vectors.
  PhaseSearch(Index dim, std::uint64_t seed);

  void learn(const Rows<Scalar>& rows);

  /// Adds features at the end.
  void grow(Index dim);

  /// Whether the best candidate fits the recent rows, or the limit of rows per feature is reached.
  [[nodiscard]] bool is_done() const;
  /// Rank-one model of the candidate with the smallest recent loss.
  [[nodiscard]] Model<Scalar> best_model() const;
  /// Recent mean of (y - (z'x)^2)^2 of the best candidate.
  [[nodiscard]] double residual_variance() const { return losses_.minCoeff(); }

  void archive(Archive& archive);

 private:
  /// Number of random vectors. The time per row is proportional to it. Sensitivity: docs/constants.md.
  static constexpr Index candidate_count = 8;

  Index dim_;
  std::uint64_t seed_;
  RowMajorMatrix<Scalar> Z_;    ///< one column per candidate
  Vector<double> losses_;       ///< per candidate: moving average of (y - (z'x)^2)^2
  double rows_ = 0;             ///< number of rows learned
  double mean_target_ = 0;      ///< moving average of the targets
  double target_variance_ = 0;  ///< moving average of their squared deviation from mean_target_
};

}  // namespace dyad
