#include "training/multi_pass/multi_pass_solver.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/random.h"
#include "solvers/gauss_newton/gauss_newton.h"
#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/gauss_newton/moment_start.h"
#include "solvers/variational/sweeps.h"
#include "training/cached_rows/cached_fit.h"
#include "training/one_pass/buffered_start.h"

namespace dyad {
namespace {

/// Converts the posterior of a bilinear model x'Mz to that of a symmetric model with features [x, z], for rows with one
/// non-zero per side. A pair occurs twice in the symmetric M, so that the factors are divided by sqrt(2).
Posterior<double> as_symmetric(Posterior<double> posterior) {
  posterior.means.left_dim = posterior.variances.left_dim = 0;
  posterior.means.diagonal = posterior.variances.diagonal = Diagonal::zero;
  posterior.means.A /= std::sqrt(2.0);
  posterior.variances.A /= 2.0;
  return posterior;
}

/// Inverse of as_symmetric().
Posterior<double> as_bilinear(Posterior<double> posterior, Index left_dim) {
  posterior.means.left_dim = posterior.variances.left_dim = left_dim;
  posterior.means.diagonal = posterior.variances.diagonal = Diagonal::tied;
  posterior.means.A *= std::sqrt(2.0);
  posterior.variances.A *= 2.0;
  return posterior;
}

/// Replaces collapsed factors by random ones, because factors of 0 are a fixed point of coordinate ascent. For a row
/// with two non-zeros of 1 and k factors of mean square a^2, the interaction 2 sum_c s_c A_ic A_jc has the variance 4 k
/// a^4. Factors are collapsed if it is below `collapse_threshold` times the noise variance.
Posterior<double> restart_collapsed_factors(Posterior<double> start) {
  constexpr double collapse_threshold = 1e-3;  // sensitivity: docs/constants.md
  constexpr double restart_fraction = 0.1;     // variance of the interactions of random factors, relative to the noise
  RowMajorMatrix<double>& A = start.means.A;
  const auto rank = static_cast<double>(A.cols());
  const double mean_square = A.squaredNorm() / static_cast<double>(std::max<Index>(1, A.size()));
  if (4 * rank * mean_square * mean_square > collapse_threshold * start.noise_variance) return start;
  const double size = std::sqrt(std::sqrt(restart_fraction * start.noise_variance / (4 * rank)));
  Random random(1, start_stream - 2);
  A = size * random_normal<double>(random, A.rows(), A.cols());
  start.variances.A.setConstant(size * size);
  return start;
}

/// Variational sweeps; one sweep is one level.
template <typename Scalar>
class VariationalPassSolver : public MultiPassSolver {
 public:
  VariationalPassSolver(const Rows<Scalar>& rows, const MultiPassSolverOptions& options, Posterior<double> start,
                        ThreadPool& pool)
      : options_(options),
        sweeps_(rows, options.kalman.likelihood,
                restart_collapsed_factors(options.kalman.shape.left_dim > 0 ? as_symmetric(std::move(start))
                                                                            : std::move(start))
                    .template cast<Scalar>(),
                pool) {}

  bool advance(const std::function<void()>& after_step) override {
    if ((options_.interrupted && options_.interrupted()) || passes() >= options_.max_passes) return false;
    sweeps_.sweep();
    ++sweep_count_;
    if (after_step) after_step();
    return true;
  }

  [[nodiscard]] std::string level() const override { return fmt::format("sweep {}", sweep_count_); }
  [[nodiscard]] double objective() const override { return -sweeps_.bound() / sweeps_.total_weight(); }
  [[nodiscard]] SignedFactors<double> parameters() const override { return result().means; }
  [[nodiscard]] Posterior<double> result() const override {
    const Index left_dim = options_.kalman.shape.left_dim;
    Posterior<double> posterior = sweeps_.posterior().template cast<double>();
    return left_dim > 0 ? as_bilinear(std::move(posterior), left_dim) : posterior;
  }
  [[nodiscard]] Index passes() const override { return passes_per_sweep * sweep_count_; }

 private:
  // A sweep reads each entry four times: as the updated feature and as the partner of another one, each for the sums
  // and for the update of the residuals.
  static constexpr Index passes_per_sweep = 4;

  const MultiPassSolverOptions& options_;
  VariationalSweeps<Scalar> sweeps_;
  Index sweep_count_ = 0;
};

/// Regularization path with two levels per decade, relative to the mean over features of sum x^2. Each fit starts from
/// the previous one, because a strong ridge has few local minima: on the data set "concrete" the fit with ridge 1e-3
/// has an rmse of 0.709 if it starts from one pass, and of 0.464 along the path (docs/method.md). Dense rows start at
/// entry `first_dense_ridge`.
constexpr std::array ridges{1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 0.0};
constexpr Index first_dense_ridge = 2;  // sensitivity: docs/constants.md

/// Smallest number of rows per unknown for a ridge of 0. With one row per unknown the fit interpolates the rows.
/// Sensitivity: docs/constants.md.
constexpr double min_rows_per_unknown_without_ridge = 2;
/// Factors whose squared norm is below this fraction of that of the start count as collapsed. Sensitivity:
/// docs/constants.md.
constexpr double collapsed_norm_ratio = 1e-2;
/// Work limit of polish(), in multiplications. Sensitivity: docs/constants.md.
constexpr double max_polish_work = 3e8;
/// Maximum number of Levenberg-Marquardt steps of one level. Sensitivity: docs/constants.md.
constexpr int max_steps_per_level = 30;
/// Lower bound of the noise variance. For targets of size 1 the squares of double rounding errors are about 1e-32.
constexpr double min_fit_noise_variance = 1e-30;

NewtonOptions interruptible_options(const MultiPassSolverOptions& options) {
  NewtonOptions newton = newton_options(options.kalman);
  newton.interrupted = options.interrupted;
  return newton;
}

/// Gauss-Newton along the regularization path. Measurements (no linear term) have one level without a ridge.
class NewtonPassSolver : public MultiPassSolver {
 public:
  NewtonPassSolver(const std::shared_ptr<const NormalEquations>& equations, bool are_sparse,
                   const MultiPassSolverOptions& options, const SignedFactors<double>& start)
      : are_sparse_(are_sparse), options_(interruptible_options(options)), solver_(equations, options_) {
    options_.exact_steps = options.exact_steps;
    options_.patience = options.patience;
    options_.max_passes = options.max_passes;
    unknowns_ = static_cast<double>(options.kalman.shape.unknowns());
    is_measurement_ = !options.kalman.shape.linear;
    weight_ = solver_.total_weight();
    predictor_scale_ = std::sqrt(options_.likelihood->predictor_variance(2 * solver_.constant_loss()));
    const Vector<double> moments = equations->gram_diagonal(false).tail(equations->dim());
    const auto occurring = static_cast<double>((moments.array() > 0).count());
    mean_feature_squares_ = moments.sum() / std::max(1.0, occurring);
    start_factors_ = start.A;
    level_ = options.first_level;
    stride_ = options.stride;
    solver_.start(start);
  }

  /// Solver for rows in memory. They allow additional starts: from the signs of the moments, and a search for
  /// starts of measurements.
  NewtonPassSolver(const ObservedRows& rows, const MultiPassSolverOptions& options, const SignedFactors<double>& start,
                   ThreadPool& pool)
      : NewtonPassSolver(std::make_shared<InMemoryNormalEquations>(rows, interruptible_options(options), pool),
                         !rows.X().is_dense(), options, start) {
    rows_.emplace(rows);
    pool_ = &pool;
  }

  bool advance(const std::function<void()>& after_step) override {
    if (is_measurement_) return solve_measurements();
    const Index path_index = stride_ * level_ + (are_sparse_ ? 0 : first_dense_ridge);
    if (path_index >= static_cast<Index>(ridges.size()) || passes() >= options_.max_passes || is_interrupted())
      return false;
    ridge_ = ridges[static_cast<std::size_t>(path_index)];
    // The loss of separable classes has no minimum without a ridge.
    const bool has_identity_link = options_.likelihood->has_identity_link();
    if (ridge_ == 0 && (!has_identity_link || weight_ < min_rows_per_unknown_without_ridge * unknowns_)) return false;
    ++level_;
    // M is proportional to the linear predictor, and the factors A are proportional to its square root.
    const double precision = ridge_ * mean_feature_squares_;
    options_.ridge = {precision, precision * predictor_scale_};
    // A strong ridge may shrink factors to 0, where their gradient is 0.
    SignedFactors<double> start = solver_.parameters();
    if (start.A.squaredNorm() < collapsed_norm_ratio * start_factors_.squaredNorm()) start.A = start_factors_;
    solver_.start(std::move(start));
    descend(after_step);
    // With fewer rows than unknowns the moments do not determine the signs.
    if (level_ == 1 && has_identity_link && !are_sparse_ && rows_ && weight_ >= unknowns_)
      try_signs_of_moments(after_step);
    return !is_interrupted();
  }

  void polish() override {
    const auto work_per_pass =
        rows_ ? static_cast<double>(rows_->count() * rows_->dim() * (options_.shape.rank + 1)) : max_polish_work;
    if (!measurement_fit_) solver_.polish(static_cast<Index>(max_polish_work / std::max(1.0, work_per_pass)));
  }

  [[nodiscard]] std::string level() const override {
    return is_measurement_ ? std::string("least squares") : fmt::format("ridge {:g}", ridge_);
  }
  [[nodiscard]] double objective() const override {
    return measurement_fit_ ? measurement_fit_->mean_squared_residual / 2 : solver_.objective();
  }
  [[nodiscard]] SignedFactors<double> parameters() const override {
    return measurement_fit_ ? measurement_fit_->parameters : solver_.parameters();
  }
  [[nodiscard]] Posterior<double> result() const override {
    const double degrees_of_freedom = std::max(weight_ - unknowns_, weight_ / 2);
    const double noise_variance =
        measurement_fit_ ? measurement_fit_->noise_variance : 2 * solver_.loss() * weight_ / degrees_of_freedom;
    return {parameters(), {}, std::max(min_fit_noise_variance, noise_variance)};
  }
  [[nodiscard]] bool has_exact_fit() const override {
    return measurement_fit_ && measurement_fit_->is_exact && weight_ > unknowns_;
  }
  [[nodiscard]] Index passes() const override {
    return solver_.passes() + (measurement_fit_ ? measurement_fit_->passes : 0);
  }

 private:
  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }

  void descend(const std::function<void()>& after_step) {
    for (int i = 0; i < max_steps_per_level && !is_interrupted() && solver_.step(); ++i)
      if (after_step) after_step();
  }

  /// Fits again from the moments, with their numbers of positive and negative eigenvalues, because steps do not change
  /// the signs of factors. Keeps the better fit.
  void try_signs_of_moments(const std::function<void()>& after_step) {
    if (options_.shape.left_dim > 0 || options_.shape.positive || is_interrupted()) return;
    const SignedFactors<double> previous = solver_.parameters();
    const double objective = solver_.objective();
    const MomentStart moments = compute_moment_start(*rows_, options_, *pool_);
    solver_.start(moments.to_parameters(options_));
    descend(after_step);
    if (!(solver_.objective() < objective)) solver_.start(previous);
  }

  /// Least squares without a ridge, which fits measurements without noise exactly. Needs rows in memory.
  bool solve_measurements() {
    if (level_ > 0 || !rows_ || weight_ < unknowns_ || is_interrupted()) return false;
    ++level_;
    const SignedFactors<double> start = solver_.parameters();
    measurement_fit_ = fit_cached_rows(*rows_, options_, StartSearch::thorough, *pool_, &start);
    return measurement_fit_->is_finite && !is_interrupted();
  }

  std::optional<ObservedRows> rows_;  ///< null: only the normal equations are available
  ThreadPool* pool_ = nullptr;
  bool are_sparse_;
  NewtonOptions options_;
  LevenbergMarquardt solver_;
  std::optional<CachedFit> measurement_fit_;  ///< null before advance(), and for models with a linear term
  double unknowns_ = 0;
  double weight_ = 0;                     ///< sum of the weights of all rows
  double predictor_scale_ = 0;            ///< standard deviation of the linear predictor
  double mean_feature_squares_ = 0;       ///< mean of sum x^2 over the features that occur
  RowMajorMatrix<double> start_factors_;  ///< factors of the first start
  double ridge_ = 0;                      ///< entry of `ridges`
  bool is_measurement_ = false;
  Index level_ = 0;   ///< number of levels so far, including skipped levels
  Index stride_ = 1;  ///< as in MultiPassSolverOptions
};

}  // namespace

template <typename Scalar>
bool supports_variational_sweeps(const Rows<Scalar>& rows, const ModelShape& shape) {
  if (shape.left_dim == 0) return shape.diagonal != Diagonal::tied;
  for (Index i = 0; i < rows.count(); ++i) {
    std::array<int, 2> entries{};
    rows.for_each_entry(i, [&](Index j, Scalar x) { entries[j >= shape.left_dim ? 1 : 0] += x != 0 ? 1 : 0; });
    if (entries[0] > 1 || entries[1] > 1) return false;
  }
  return shape.linear;
}

template <typename Scalar>
std::unique_ptr<MultiPassSolver> make_multi_pass_solver(const Rows<Scalar>& rows, const MultiPassSolverOptions& options,
                                                        Posterior<double> start, ThreadPool& pool) {
  if (options.solver == Solver::variational)
    return std::make_unique<VariationalPassSolver<Scalar>>(rows, options, std::move(start), pool);
  return std::make_unique<NewtonPassSolver>(rows, options, start.means, pool);
}

std::unique_ptr<MultiPassSolver> make_newton_pass_solver(const std::shared_ptr<const NormalEquations>& equations,
                                                         bool are_sparse, const MultiPassSolverOptions& options,
                                                         const SignedFactors<double>& start) {
  return std::make_unique<NewtonPassSolver>(equations, are_sparse, options, start);
}

template bool supports_variational_sweeps(const Rows<float>&, const ModelShape&);
template bool supports_variational_sweeps(const Rows<double>&, const ModelShape&);
template std::unique_ptr<MultiPassSolver> make_multi_pass_solver(const Rows<float>&, const MultiPassSolverOptions&,
                                                                 Posterior<double>, ThreadPool&);
template std::unique_ptr<MultiPassSolver> make_multi_pass_solver(const Rows<double>&, const MultiPassSolverOptions&,
                                                                 Posterior<double>, ThreadPool&);

}  // namespace dyad
