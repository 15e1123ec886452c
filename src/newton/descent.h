#pragma once

#include "newton/objective.h"
#include "newton/preconditioner.h"

namespace dyad {

/// Levenberg-Marquardt: Gauss-Newton steps, damped as far as the loss asks for. Each is solved by conjugate gradients,
/// or by a Cholesky decomposition with one equation per row where rows are few.
template <typename Scalar>
class Descent {
 public:
  /// The options are somebody else's.
  Descent(const std::shared_ptr<const RowLooks<Scalar>>& looks, const NewtonOptions& options);
  /// On rows in memory, which are somebody else's, too, like the workers.
  Descent(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers)
      : Descent(std::make_shared<LooksInMemory<Scalar>>(rows, options, workers), options) {}

  void start(SignedFactors<Scalar> parameters);

  /// Takes a step, or finds a better damping for the next; false where there is nothing more to gain.
  bool step();

  /// From here to where there is nothing more to gain.
  void run();

  /// From near a minimum to the minimum itself, as far as rounding and so many looks at all rows allow.
  void polish(Index most_products);

  [[nodiscard]] const SignedFactors<Scalar>& parameters() const { return parameters_; }
  [[nodiscard]] double loss() const { return loss_; }            ///< mean by weight, without the ridge
  [[nodiscard]] double objective() const { return objective_; }  ///< with it
  [[nodiscard]] bool is_exact() const;                           ///< nothing is left but rounding
  [[nodiscard]] double total_weight() const { return rows_.total_weight(); }
  [[nodiscard]] double constant_loss() const { return rows_.constant_loss(); }  ///< of the best constant
  [[nodiscard]] Index steps() const { return steps_; }
  [[nodiscard]] Index products() const { return rows_.products(); }  ///< looks at all rows

 private:
  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }
  void add_ridge(Scalar scale, const Vector<Scalar>& weights, const Tall<Scalar>& factors,
                 const Vector<Scalar>& squares, Direction<Scalar>& to) const;
  [[nodiscard]] double ridge_of(const SignedFactors<Scalar>& parameters) const;
  [[nodiscard]] Direction<Scalar> slope() const;
  Direction<Scalar> solve(double tolerance);
  Direction<Scalar> solve_dual();
  Direction<Scalar> slope_at(SignedFactors<Scalar> parameters);
  Direction<Scalar> newton_step(const Direction<Scalar>& slope, double damping, Index last_product);

  const NewtonOptions& options_;
  Objective<Scalar> rows_;
  Preconditioner<Scalar> preconditioner_;
  SignedFactors<Scalar> parameters_;
  double loss_ = 0;
  double objective_ = 0;
  double damping_ = 0;
  double predicted_gain_ = 0;
  int stalled_ = 0;
  bool has_moved_ = false;  ///< the objective's place is not `parameters_`
  Index steps_ = 0;
};

}  // namespace dyad
