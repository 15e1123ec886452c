#include "training/multi_pass/multi_pass_solver.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/random.h"
#include "solvers/gauss_newton/gauss_newton.h"
#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/gauss_newton/moment_start.h"
#include "solvers/variational/sweeps.h"
#include "training/one_pass/buffered_start.h"

namespace dyad {
namespace {

/// The posterior of a bilinear model as that of a symmetric one, for rows with one feature per side: each pair then
/// occurs twice in M.
Posterior<double> as_symmetric(Posterior<double> posterior) {
  posterior.means.left_dim = posterior.variances.left_dim = 0;
  posterior.means.diagonal = posterior.variances.diagonal = Diagonal::zero;
  posterior.means.A /= std::sqrt(2.0);
  posterior.variances.A /= 2.0;
  return posterior;
}

Posterior<double> as_two_sides(Posterior<double> posterior, Index left_dim) {
  posterior.means.left_dim = posterior.variances.left_dim = left_dim;
  posterior.means.diagonal = posterior.variances.diagonal = Diagonal::tied;
  posterior.means.A *= std::sqrt(2.0);
  posterior.variances.A *= 2.0;
  return posterior;
}

/// Coordinate ascent cannot leave factors of 0. If the factors of the start explain less than `collapse_threshold` of
/// the noise variance, they are replaced by random ones that explain a tenth of it.
Posterior<double> restart_collapsed_factors(Posterior<double> start) {
  constexpr double collapse_threshold = 1e-3;  // for a row of two features
  constexpr double restart_share = 0.1;
  Tall<double>& A = start.means.A;
  const auto rank = static_cast<double>(A.cols());
  const double mean_square = A.squaredNorm() / static_cast<double>(std::max<Index>(1, A.size()));
  if (4 * rank * mean_square * mean_square > collapse_threshold * start.noise_variance) return start;
  const double size = std::sqrt(std::sqrt(restart_share * start.noise_variance / (4 * rank)));
  Random random(1, start_stream - 2);
  A = size * random_normal<double>(random, A.rows(), A.cols());
  start.variances.A.setConstant(size * size);
  return start;
}

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
    ++count_;
    if (after_step) after_step();
    return true;
  }

  [[nodiscard]] std::string level() const override { return fmt::format("sweep {}", count_); }
  [[nodiscard]] double objective() const override { return -sweeps_.bound() / sweeps_.total_weight(); }
  [[nodiscard]] SignedFactors<double> parameters() const override { return result().means; }
  [[nodiscard]] Posterior<double> result() const override {
    const Index left_dim = options_.kalman.shape.left_dim;
    Posterior<double> found = sweeps_.posterior().template cast<double>();
    return left_dim > 0 ? as_two_sides(std::move(found), left_dim) : found;
  }
  [[nodiscard]] Index passes() const override { return 4 * count_; }  // each entry from both ends, twice

 private:
  const MultiPassSolverOptions& options_;
  VariationalSweeps<Scalar> sweeps_;
  Index count_ = 0;
};

/// Regularization path, relative to the mean sum of squares of a feature. Each fit starts from the previous one,
/// because a strong ridge has few local minima. Dense rows start at the third level.
constexpr std::array ridges{1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 0.0};
constexpr Index first_dense = 2;

NewtonOptions interruptible_options(const MultiPassSolverOptions& options) {
  NewtonOptions newton = newton_options(options.kalman);
  newton.interrupted = options.interrupted;
  return newton;
}

class NewtonPassSolver : public MultiPassSolver {
 public:
  NewtonPassSolver(const std::shared_ptr<const NormalEquations>& equations, bool are_sparse,
                   const MultiPassSolverOptions& options, const SignedFactors<double>& start)
      : are_sparse_(are_sparse), options_(interruptible_options(options)), solver_(equations, options_) {
    options_.exact_steps = options.exact_steps;
    options_.patience = options.patience;
    options_.most_products = options.max_passes;
    unknowns_ = static_cast<double>(options.kalman.shape.unknowns());
    is_measurement_ = !options.kalman.shape.linear;
    weight_ = solver_.total_weight();
    predictor_scale_ = std::sqrt(options_.likelihood->predictor_variance(2 * solver_.constant_loss()));
    const Vector<double> moments = equations->product_diagonal(false).tail(equations->dim());
    const auto occurring = static_cast<double>((moments.array() > 0).count());
    usual_moment_ = moments.sum() / std::max(1.0, occurring);
    start_factors_ = start.A;
    level_ = options.first_level;
    stride_ = options.stride;
    solver_.start(start);
  }

  /// Rows in memory allow other starts.
  NewtonPassSolver(const ObservedRows& rows, const MultiPassSolverOptions& options, const SignedFactors<double>& start,
                   ThreadPool& pool)
      : NewtonPassSolver(std::make_shared<InMemoryNormalEquations>(rows, interruptible_options(options), pool),
                         !rows.X().is_dense(), options, start) {
    rows_.emplace(rows);
    pool_ = &pool;
  }

  bool advance(const std::function<void()>& after_step) override {
    if (is_measurement_) return solve_measurements();
    const Index place = stride_ * level_ + (are_sparse_ ? 0 : first_dense);
    if (place >= static_cast<Index>(ridges.size()) || passes() >= options_.most_products || is_interrupted())
      return false;
    ridge_ = ridges[static_cast<std::size_t>(place)];
    // Without a ridge the loss of separable classes has no minimum.
    const bool has_identity_link = options_.likelihood->has_identity_link();
    if (ridge_ == 0 && (!has_identity_link || weight_ < 2 * unknowns_)) return false;
    ++level_;
    // M scales with the linear predictor, and A with its square root.
    const double precision = ridge_ * usual_moment_;
    options_.ridge = {precision, precision * predictor_scale_};
    // The gradient of factors is 0 at factors of 0, to which a strong ridge may have led.
    constexpr double vanished = 1e-2;
    SignedFactors<double> from = solver_.parameters();
    if (from.A.squaredNorm() < vanished * start_factors_.squaredNorm()) from.A = start_factors_;
    solver_.start(std::move(from));
    descend(after_step);
    // The moments of fewer rows than unknowns do not determine the signs.
    if (level_ == 1 && has_identity_link && !are_sparse_ && rows_ && weight_ >= unknowns_)
      try_signs_of_moments(after_step);
    return !is_interrupted();
  }

  void polish() override {
    constexpr double most_work = 3e8;  // numbers touched
    const auto work_of_pass =
        rows_ ? static_cast<double>(rows_->count() * rows_->dim() * (options_.shape.rank + 1)) : most_work;
    if (!exact_) solver_.polish(static_cast<Index>(most_work / std::max(1.0, work_of_pass)));
  }

  [[nodiscard]] std::string level() const override {
    return is_measurement_ ? std::string("least squares") : fmt::format("ridge {:g}", ridge_);
  }
  [[nodiscard]] double objective() const override {
    return exact_ ? exact_->residual_squares / 2 : solver_.objective();
  }
  [[nodiscard]] SignedFactors<double> parameters() const override {
    return exact_ ? exact_->parameters : solver_.parameters();
  }
  [[nodiscard]] Posterior<double> result() const override {
    const double squares = exact_ ? exact_->residual_squares : 2 * solver_.loss();
    const double spare = std::max(weight_ - unknowns_, weight_ / 2);
    constexpr double least_noise = 1e-30;
    return {parameters(), {}, std::max(least_noise, squares * weight_ / spare)};
  }
  [[nodiscard]] bool is_exact() const override { return exact_ && exact_->exact && weight_ > unknowns_; }
  [[nodiscard]] Index passes() const override { return solver_.products() + (exact_ ? exact_->products : 0); }

 private:
  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }

  void descend(const std::function<void()>& after_step) {
    constexpr int most_steps = 30;
    for (int i = 0; i < most_steps && !is_interrupted() && solver_.step(); ++i)
      if (after_step) after_step();
  }

  /// Starts again with the numbers of positive and negative factors of the moments, because steps do not change signs.
  void try_signs_of_moments(const std::function<void()>& after_step) {
    if (options_.shape.left_dim > 0 || options_.shape.positive || is_interrupted()) return;
    const SignedFactors<double> other = solver_.parameters();
    const double objective = solver_.objective();
    const MomentStart moments = moment_start(*rows_, options_, *pool_);
    solver_.start(moments.take(options_, moments.positive_count(options_.shape.rank)));
    descend(after_step);
    if (!(solver_.objective() < objective)) solver_.start(other);
  }

  /// Measurements without noise can be fitted exactly.
  bool solve_measurements() {
    if (level_ > 0 || !rows_ || weight_ < unknowns_ || is_interrupted()) return false;
    ++level_;
    const SignedFactors<double> start = solver_.parameters();
    // With many rows all starts lead to the same fit.
    constexpr double many = 10;
    options_.restarts = weight_ < many * unknowns_;
    exact_ = gauss_newton(*rows_, options_, *pool_, &start);
    return exact_->finite && !is_interrupted();
  }

  std::optional<ObservedRows> rows_;
  ThreadPool* pool_ = nullptr;
  bool are_sparse_;
  NewtonOptions options_;
  LevenbergMarquardt solver_;
  std::optional<NewtonFit> exact_;  ///< of measurements
  double unknowns_ = 0;
  double weight_ = 0;           ///< of all rows
  double predictor_scale_ = 0;  ///< standard deviation of the linear predictor
  double usual_moment_ = 0;     ///< sum of squares of a feature that occurs
  Tall<double> start_factors_;
  double ridge_ = 0;
  bool is_measurement_ = false;
  Index level_ = 0;
  Index stride_ = 1;
};

}  // namespace

template <typename Scalar>
bool can_sweep(const Rows<Scalar>& rows, const ModelShape& shape) {
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

template bool can_sweep(const Rows<float>&, const ModelShape&);
template bool can_sweep(const Rows<double>&, const ModelShape&);
template std::unique_ptr<MultiPassSolver> make_multi_pass_solver(const Rows<float>&, const MultiPassSolverOptions&,
                                                                 Posterior<double>, ThreadPool&);
template std::unique_ptr<MultiPassSolver> make_multi_pass_solver(const Rows<double>&, const MultiPassSolverOptions&,
                                                                 Posterior<double>, ThreadPool&);

}  // namespace dyad
