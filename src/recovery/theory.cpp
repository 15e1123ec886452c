#include "recovery/theory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "model/sides.h"
#include "recovery/recovery_error.h"
#include "solvers/moment/change_estimator.h"

namespace dyad {
namespace {

/// Norms of the error of a change that is estimated from a batch.
struct ChangeError {
  double M = 0;  ///< spectral norm
  double w = 0;  ///< Euclidean norm; 0 if the problem has no weights
};

/// Errors of the changes estimated from one batch, separated into the part that is caused by the sampling of the rows
/// and the part that is caused by noise and residual spectrum. The moment sums are linear in the residuals: the
/// residuals of the planted rank-k model are the noise, and the rest is the signal. Spectral norms are computed from
/// products of d x d matrices with thin matrices Z. The matrices are formed if d is small; otherwise every product
/// reads the batch. Does not own its arguments.
class BatchErrors {
 public:
  BatchErrors(const Model<double>& model, const PlantedProblem& problem, const Batch<double>& batch, ThreadPool& pool)
      : model_(model),
        problem_(problem),
        truth_(problem.truth()),
        batch_(batch),
        pool_(pool),
        with_true_weights_(model),
        sides_(truth_),
        estimator_(gaussian_moments(truth_)) {
    with_true_weights_.weights = truth_.weights;
  }

  [[nodiscard]] bool has_noise() const { return problem_.options().noise > 0 || problem_.options().residual > 0; }

  /// Error of the change estimated without noise: (H1 - h2 I/2) - D and h3 - (w* - w), with D = M*_k - M.
  [[nodiscard]] ChangeError signal() {
    ChangeError error;
    error.M = operator_norm(truth_.dim(), [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> {
      const ModelChange change = estimator_.estimate(signal_sums(model_, Z), Z);
      error.w = norm_of_weights(change.dw - (as_vector(truth_.weights) - as_vector(model_.weights)));
      return change.dM_times_Z - D_times(Z);
    });
    return error;
  }

  /// Change estimated from the noise alone, minus its expectation: (H1 - h2 I/2) - (M* - M*_k), and h3.
  [[nodiscard]] ChangeError noise() {
    ChangeError error;
    if (!has_noise()) return error;
    error.M = operator_norm(truth_.dim(), [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> {
      const ModelChange change = estimator_.estimate(accumulate_sums(truth_, Z), Z);
      error.w = norm_of_weights(change.dw);
      return change.dM_times_Z - problem_.residual_times(Z);
    });
    return error;
  }

  /// |A'A(D)/(2n) - tr(D) I/2 - D|_2.
  [[nodiscard]] double shifted_ci_rip() {
    const double half_trace = (truth_.mean_interaction() - model_.mean_interaction()) / 2;
    return operator_norm(truth_.dim(), [&](const RowMajorMatrix<double>& Z) -> RowMajorMatrix<double> {
      const MomentSums<double> sums = signal_sums(with_true_weights_, Z);
      return sums.G() / (2.0 * static_cast<double>(sums.rows)) - half_trace * Z - D_times(Z);
    });
  }

 private:
  static MomentOptions gaussian_moments(const Model<double>& truth) {
    MomentOptions options;
    options.shape.dim = truth.dim();
    options.shape.rank = truth.rank();
    options.moments = Moments::gaussian;
    return options;
  }
  [[nodiscard]] RowMajorMatrix<double> D_times(const RowMajorMatrix<double>& Z) const {
    return sides_.interactions_times(truth_, Z) - sides_.interactions_times(model_, Z);
  }
  [[nodiscard]] double norm_of_weights(const Vector<double>& error) const {
    return problem_.options().has_weights() ? error.norm() : 0;
  }
  [[nodiscard]] MomentSums<double> read_batch(const Model<double>& reference, const RowMajorMatrix<double>& Z) {
    MomentAccumulator<double> accumulator(pool_, reference, Z);
    batch_([&](const Rows<double>& rows) { accumulator.add(rows); });
    return accumulator.total();
  }
  /// Sums over the batch with the residuals of `reference`, which is one of the models of this object.
  [[nodiscard]] MomentSums<double> accumulate_sums(const Model<double>& reference, const RowMajorMatrix<double>& Z) {
    // Up to this dimension one pass with Z = I takes less time than the passes of subspace iteration: measured 0.16
    // times the time at d = 60 and 0.33 times at d = 250.
    constexpr Index max_dense_dim = 256;
    if (truth_.dim() > max_dense_dim) return read_batch(reference, Z);
    const Index d = truth_.dim();
    auto found = dense_sums_.find(&reference);
    if (found == dense_sums_.end())
      found = dense_sums_.emplace(&reference, read_batch(reference, RowMajorMatrix<double>::Identity(d, d))).first;
    MomentSums<double> sums = found->second;
    RowMajorMatrix<double> moments(d, Z.cols() + 1);
    moments << found->second.G() * Z, found->second.p1();
    sums.moments = std::move(moments);
    return sums;
  }
  /// Sums over the batch with the residuals that `reference` would have if the targets had no noise.
  [[nodiscard]] MomentSums<double> signal_sums(const Model<double>& reference, const RowMajorMatrix<double>& Z) {
    MomentSums<double> sums = accumulate_sums(reference, Z);
    if (!has_noise()) return sums;
    const MomentSums<double> noise_sums = accumulate_sums(truth_, Z);
    sums.p0 -= noise_sums.p0;
    sums.moments -= noise_sums.moments;
    return sums;
  }

  const Model<double>& model_;
  const PlantedProblem& problem_;
  const Model<double>& truth_;
  const Batch<double>& batch_;
  ThreadPool& pool_;
  Model<double> with_true_weights_;  ///< M of the model and w*; its residuals without noise are A(D)
  Sides sides_;
  ChangeEstimator estimator_;
  std::map<const Model<double>*, MomentSums<double>> dense_sums_;  ///< with Z = I, by the model of the residuals
};

}  // namespace

TheoryPoint bound_errors(const ProofConstants& constants, const RecoveryPoint& before) {
  constexpr double max_tan_theta = 2;  // cos(theta) >= 1/sqrt(5)
  const double four_root_five = 4 * std::sqrt(5.0);
  const auto& [sigma_1, sigma_k, sigma_next, delta, r] = constants;
  const double epsilon = before.error();
  const double rho = 2 * sigma_next / (sigma_k + sigma_next);
  const double c = four_root_five / (sigma_k + sigma_next);
  const double b = 3 + c * sigma_1;
  TheoryPoint theory;
  theory.delta = delta;
  theory.noise = r;
  theory.is_applicable =
      before.tan_theta <= max_tan_theta && four_root_five * (delta * epsilon + r) <= sigma_k - sigma_next;
  theory.alpha_bound = rho * before.tan_theta + c * (delta * epsilon + r);
  theory.beta_bound = delta * epsilon + r;
  theory.gamma_bound = theory.alpha_bound * sigma_1 + 2 * (delta * epsilon + r);
  theory.factor = b * delta;
  // The coefficients of alpha and of 2 c delta eps in the recursion of the index are at most the rate (docs/paper.md).
  theory.index_weight = 2 * c * delta;
  theory.rate = std::max(rho * (1 + theory.index_weight * sigma_1), (1 + 2 * theory.factor) / 2);
  const double index_noise = (1 + 2 * theory.factor) * c * r;
  theory.index_bound = theory.rate * (before.tan_theta + theory.index_weight * epsilon) + index_noise;
  theory.index_floor = theory.rate < 1 ? index_noise / (1 - theory.rate) : std::numeric_limits<double>::infinity();
  if (!theory.is_applicable)
    theory.alpha_bound = theory.beta_bound = theory.gamma_bound = theory.index_bound =
        std::numeric_limits<double>::infinity();
  return theory;
}

TheoryPoint measure_theory(const Model<double>& model, const PlantedProblem& problem, const RecoveryPoint& before,
                           const Batch<double>& batch, ThreadPool& pool) {
  constexpr double rounding_margin = 1 + 1e-9;  // delta is attained, so rounding could violate the bounds
  BatchErrors errors(model, problem, batch, pool);
  const ChangeError signal = errors.signal();
  const ChangeError noise = errors.noise();
  const double ci_rip = errors.shifted_ci_rip() / before.error_M;
  ProofConstants constants;
  constants.sigma_1 = std::abs(problem.truth().spectrum.front());
  constants.sigma_k = std::abs(problem.truth().spectrum.back());
  constants.sigma_next = problem.options().residual;
  constants.delta = rounding_margin * std::max(ci_rip, std::max(signal.M, signal.w) / before.error());
  constants.noise = rounding_margin * std::max(noise.M, noise.w);
  TheoryPoint theory = bound_errors(constants, before);
  theory.ci_rip = ci_rip;
  if (!problem.options().has_weights()) theory.beta_bound = 0;
  return theory;
}

}  // namespace dyad
