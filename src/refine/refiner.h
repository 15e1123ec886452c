#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include <dyad/recover.h>

#include "base/workers.h"
#include "kalman/filter.h"
#include "newton/normal_equations.h"

namespace dyad {

/// What a refiner has made of the rows.
struct Refined {
  Beliefs<double> beliefs;    ///< variances may be empty: what the rows leave open is not known yet
  double noise_variance = 1;  ///< regression
  [[nodiscard]] bool has_variances() const { return beliefs.variances.dim() > 0; }
};

/// A solver that looks at all rows again and again, from one level to the next: sweep after sweep, or with a weaker and
/// weaker ridge. Where a level is too far, the one before it is not.
class Refiner {
 public:
  virtual ~Refiner() = default;

  /// To the next level, with a word after every step on the way; false where there is none, or after an interruption.
  virtual bool advance(const std::function<void()>& after_step) = 0;

  /// To where the level itself ends, as far as rounding allows.
  virtual void polish() {}

  [[nodiscard]] virtual std::string level() const = 0;  ///< its name
  [[nodiscard]] virtual double objective() const = 0;   ///< per row, to be made small
  [[nodiscard]] virtual SignedFactors<double> parameters() const = 0;
  [[nodiscard]] virtual Refined result() const = 0;
  [[nodiscard]] virtual Index looks() const = 0;                 ///< at all rows
  [[nodiscard]] virtual bool is_exact() const { return false; }  ///< more rows than unknowns, and all are met
};

struct RefinerOptions {
  KalmanOptions kalman;
  Solver solver = Solver::newton;                        ///< newton or variational
  bool exact_steps = false;                              ///< newton: as in NewtonOptions
  int patience = 3;                                      ///< newton: as in NewtonOptions
  Index stride = 1;                                      ///< newton: ridges from one level to the next
  Index first_level = 0;                                 ///< newton: so many are behind it
  Index most_looks = std::numeric_limits<Index>::max();  ///< at all rows, in all
  std::function<bool()> interrupted;
};

/// Whether variational sweeps can learn such a model: a symmetric one whose diagonal is not tied, or one of two sides
/// each of which has no more than one feature in a row.
template <typename Scalar>
bool can_sweep(const Rows<Scalar>& rows, const ModelShape& shape);

/// From where one pass ended: `start`, with features of scale 1. Rows without weight do not count. Options, rows and
/// workers are somebody else's.
template <typename Scalar>
std::unique_ptr<Refiner> make_refiner(const Rows<Scalar>& rows, const RefinerOptions& options, Beliefs<double> start,
                                      double noise_variance, Workers& workers);

/// Gauss-Newton for rows that lie anywhere.
std::unique_ptr<Refiner> make_newton_refiner(const std::shared_ptr<const NormalEquations>& equations, bool are_sparse,
                                             const RefinerOptions& options, const SignedFactors<double>& start);

}  // namespace dyad
