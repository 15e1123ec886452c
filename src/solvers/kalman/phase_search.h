#pragma once

#include <cstdint>

#include <dyad/model.h>

#include "base/archive.h"
#include "linalg/matrix.h"

namespace dyad {

/// Phase retrieval from nothing and without keeping rows: several random vectors, each corrected by every row towards
/// the nearer of the two answers to sqrt(y) = |a'x| (randomised Kaczmarz, relaxed). About ten rows per feature lead the
/// best of them close to a or -a.
template <typename Scalar>
class PhaseSearch {
 public:
  PhaseSearch(Index dim, std::uint64_t seed);

  void learn(const Rows<Scalar>& rows);

  /// New features at the end.
  void grow(Index dim);

  /// Whether the best is worth going on from.
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] Model<Scalar> best() const;
  [[nodiscard]] double residual_variance() const { return losses_.minCoeff(); }

  void archive(Archive& archive);

 private:
  static constexpr Index searchers = 8;

  Index dim_;
  std::uint64_t seed_;
  Tall<Scalar> Z_;
  Vector<double> losses_;  ///< recent mean squares of y - (z'x)^2
  double rows_ = 0;
  double mean_target_ = 0;
  double spread_ = 0;  ///< recent variance of the targets
};

}  // namespace dyad
