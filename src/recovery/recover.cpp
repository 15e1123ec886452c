#include <dyad/recover.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include <dyad/moment.h>

#include "base/peak_memory.h"
#include "base/thread_pool.h"
#include "data/row_block.h"
#include "data/row_cache.h"
#include "recovery/outcome_text.h"
#include "recovery/planted_problem.h"
#include "recovery/recovery_error.h"
#include "recovery/theory.h"
#include "training/cached_rows/cached_fit.h"
#include "training/cached_rows/fit_status.h"
#include "training/one_pass/stream_learner.h"

namespace dyad {
namespace {

MomentOptions moment_options(const RecoverOptions& options) {
  MomentOptions moment;
  moment.shape = options.problem.shape();
  moment.moments = options.moments;
  moment.threads = options.threads;
  moment.seed = options.problem.seed;
  return moment;
}

/// Thrown to end a run if the user interrupts it.
class Interrupted {};

/// Provides the planted rows in order and counts them. Every row can be read again. Does not own the hooks.
class PlantedReader {
 public:
  PlantedReader(const RecoverOptions& options, const RecoveryHooks& hooks)
      : problem_(options.problem), hooks_(hooks), pool_(options.threads) {}

  [[nodiscard]] const PlantedProblem& problem() const { return problem_; }
  [[nodiscard]] const Model<double>& truth() const { return problem_.truth(); }
  /// Number of distinct rows provided.
  [[nodiscard]] Index rows() const { return rows_; }
  /// Number of rows provided, repetitions included.
  [[nodiscard]] Index row_reads() const { return row_reads_; }
  [[nodiscard]] ThreadPool& pool() { return pool_; }
  /// Variance of the targets of the rows so far.
  [[nodiscard]] double target_variance() const {
    const double mean = target_sum_ / target_count_;
    return target_squares_ / target_count_ - mean * mean;
  }

  /// Calls `visitor` with the rows [first, first + total) in blocks.
  void visit(Index first, Index total, const std::function<void(const Rows<double>&)>& visitor) {
    const Index max_block_rows = rows_per_block(truth().dim(), sizeof(double));
    for (Index done = 0; done < total; done += max_block_rows) {
      if (hooks_.interrupted && hooks_.interrupted()) throw Interrupted();
      const Index count = std::min(max_block_rows, total - done);
      problem_.generate(first + done, count, pool_, block_);
      row_reads_ += count;
      for (const double y : block_.targets) {
        target_sum_ += y;
        target_squares_ += y * y;
        target_count_ += 1;
      }
      rows_ = std::max(rows_, first + done + count);
      visitor(block_.view());
    }
  }

  /// The next `count` rows that have not been provided, as a batch that can be read repeatedly.
  Batch<double> next(Index count) {
    const Index first = rows_;
    rows_ += count;
    return
        [this, first, count](const std::function<void(const Rows<double>&)>& visitor) { visit(first, count, visitor); };
  }

 private:
  PlantedProblem problem_;
  const RecoveryHooks& hooks_;
  ThreadPool pool_;
  DenseBlock<double> block_;
  Index rows_ = 0;
  Index row_reads_ = 0;
  double target_count_ = 0;    ///< rows in the two sums, repetitions included
  double target_sum_ = 0;      ///< of the targets
  double target_squares_ = 0;  ///< of their squares
};

/// Errors of `model` against the truth. `leading`: the rank-k model whose U gives the angle and the amplitude error.
RecoveryPoint compute_errors(const Model<double>& model, const Model<double>& leading, const Model<double>& truth,
                             Kind kind) {
  RecoveryPoint point;
  point.error_w = (as_vector(model.weights) - as_vector(truth.weights)).norm();
  point.error_M = interaction_error(model, truth);
  point.error_squares = square_error(model, truth);
  point.error_b = std::abs(model.intercept - truth.intercept);
  point.error_a = kind == Kind::phase ? amplitude_error(leading, truth) : 0;
  point.tan_theta = tan_largest_angle(leading, truth);
  return point;
}

/// Whether the error is much larger than that of the zero model.
bool has_diverged(const RecoveryPoint& point, const Model<double>& truth) {
  constexpr double divergence_ratio = 10;  // of the error to that of the zero model; sensitivity: docs/constants.md
  return point.error() >
         divergence_ratio * (as_vector(truth.weights).norm() + as_vector(truth.spectrum).cwiseAbs().maxCoeff());
}

/// Moment solver with either the one-scan or the paper's update.
class MomentSolver {
 public:
  explicit MomentSolver(const RecoverOptions& options) {
    if (options.update.value_or(Update::one_scan) == Update::one_scan)
      one_scan_.emplace(moment_options(options));
    else
      paper_.emplace(moment_options(options));
  }

  BatchReport update(const Batch<double>& batch) {
    if (paper_) return paper_->update(batch);
    batch([&](const Rows<double>& rows) { one_scan_->observe(rows); });
    return one_scan_->update();
  }

  /// The model of rank k.
  [[nodiscard]] const Model<double>& model() const { return paper_ ? paper_->model() : one_scan_->model(); }
  /// The paper's update: (UV' + VU')/2, which has rank up to 2k before convergence.
  [[nodiscard]] const Model<double>& full_model() const { return paper_ ? paper_->full_model() : one_scan_->model(); }
  /// Whether the next batch is used only for the truncated SVD that initializes the paper's solver.
  [[nodiscard]] bool is_initialization() const { return paper_ && !paper_->has_started(); }
  [[nodiscard]] Moments moments() const { return paper_ ? paper_->moments() : one_scan_->moments(); }

 private:
  std::optional<OneScanSolver<double>> one_scan_;
  std::optional<PaperSolver<double>> paper_;
};

/// Runs a solver until the error is below the tolerance, the rows are used, a parameter is not finite, or the user
/// interrupts it. Does not own its arguments.
class Recovery {
 public:
  Recovery(const RecoverOptions& options, const RecoveryHooks& hooks, RecoverySummary& summary)
      : options_(options), hooks_(hooks), summary_(summary), reader_(options, hooks) {}

  void run() {
    try {
      switch (options_.resolved_solver()) {
        case Solver::moment:
          run_moment();
          break;
        case Solver::newton:
          run_newton();
          break;
        default:
          run_stream();
      }
      if (summary_.outcome == Outcome::budget && !summary_.trace.empty() &&
          has_diverged(summary_.trace.back(), reader_.truth()))
        summary_.outcome = Outcome::diverged;
    } catch (const Interrupted&) {
      summary_.outcome = Outcome::interrupted;
    }
    summary_.row_reads += reader_.row_reads();
    summary_.seconds = elapsed();
  }

 private:
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] RecoveryPoint measure_errors(const Model<double>& model, const Model<double>& leading) const {
    return compute_errors(model, leading, reader_.truth(), options_.problem.kind);
  }
  /// Whether the outcome is decided. `Outcome::budget` is the initial value.
  [[nodiscard]] bool is_over() const { return summary_.outcome != Outcome::budget; }

  /// Records the errors of the zero model as the start.
  void start_from_zero_model() {
    const ModelShape shape = options_.problem.shape();
    summary_.model = Model<double>(shape.dim, shape.rank, shape.left_dim);
    if (shape.diagonal != Diagonal::tied) summary_.model.squares.resize(summary_.model.weights.size());
    summary_.start = measure_errors(summary_.model, summary_.model);
  }

  /// Appends a point to the trace and reports it.
  void record(RecoveryPoint point, double residual_rms) {
    summary_.rows = reader_.rows();
    point.rows = summary_.rows;
    point.residual_rms = residual_rms;
    point.seconds = elapsed();
    summary_.trace.push_back(point);
    if (hooks_.progress) hooks_.progress(point);
    if (point.error() <= options_.tolerance) summary_.outcome = Outcome::converged;
  }

  void run_moment() {
    MomentSolver solver(options_);
    summary_.start = measure_errors(solver.full_model(), solver.model());
    summary_.model = solver.model();
    summary_.origin = "the moment solver";
    while (!is_over() && reader_.rows() + options_.batch_rows() <= options_.row_budget()) {
      const Batch<double> batch = reader_.next(options_.batch_rows());
      std::optional<TheoryPoint> theory;
      if (options_.theory && !solver.is_initialization())
        theory = measure_theory(solver.full_model(), reader_.problem(),
                                measure_errors(solver.full_model(), solver.model()), batch, reader_.pool());
      const BatchReport report = solver.update(batch);
      // The proof bounds the error of the full M. Otherwise the error is that of the exported rank-k part.
      RecoveryPoint point = measure_errors(options_.theory ? solver.full_model() : solver.model(), solver.model());
      point.theory = theory;
      summary_.model = solver.model();
      record(point, report.residual_rms);
      if (!report.is_accepted) summary_.outcome = Outcome::diverged;
      if (std::isfinite(report.residual_rms)) summary_.noise = report.residual_rms;
    }
    summary_.moments = solver.moments();
    report_residuals();
  }

  void run_stream() {
    StreamLearner<double> learner(stream_options(), reader_.pool());
    start_from_zero_model();
    std::vector<double> predictions;
    while (!is_over() && reader_.rows() < options_.row_budget()) {
      // Rows between two points of the trace: kd / 4, and from 4 kd rows on a sixteenth of the rows so far.
      const auto step = std::max<Index>({1, options_.problem.kd() / 4, reader_.rows() / 16});
      const Batch<double> batch = reader_.next(std::min(step, options_.row_budget() - reader_.rows()));
      double squared_residuals = 0;
      Index count = 0;
      batch([&](const Rows<double>& rows) {
        predictions.resize(static_cast<std::size_t>(rows.count()));
        learner.learn(rows, predictions);
        for (std::size_t i = 0; i < predictions.size(); ++i)
          squared_residuals += std::pow(rows.targets()[i] - predictions[i], 2);
        count += rows.count();
      });
      // The row budget can end before the buffer has the size of the next fit.
      if (reader_.rows() >= options_.row_budget()) learner.finish_buffered_start();
      if (hooks_.interrupted && hooks_.interrupted()) throw Interrupted();
      summary_.model = learner.model();
      summary_.noise = std::sqrt(learner.noise_variance());
      summary_.origin = learner.origin();
      record(measure_errors(summary_.model, summary_.model), std::sqrt(squared_residuals / static_cast<double>(count)));
      if (!summary_.model.is_finite()) summary_.outcome = Outcome::diverged;
    }
    summary_.row_reads += learner.extra_row_reads();
    summary_.cached_rows = learner.fitted_rows();
    summary_.fits_exactly = learner.fits_exactly() && summary_.cached_rows > options_.unknowns();
    if (learner.diagnosis())
      report(*learner.diagnosis());
    else
      report_residuals();
  }

  void run_newton() {
    start_from_zero_model();
    NewtonOptions newton = newton_options(kalman_options(moment_options(options_)));
    newton.interrupted = hooks_.interrupted;
    RowCache<double> cache;
    for (const Index size : options_.cached_row_counts()) {
      reader_.next(size - cache.count())([&](const Rows<double>& rows) { cache.append(rows); });
      const ObservedRows rows(cache.view(newton.shape.dim));
      const bool is_last = size == options_.cached_row_counts().back();
      const CachedFit fit =
          fit_cached_rows(rows, newton, is_last ? StartSearch::thorough : StartSearch::brief, reader_.pool());
      if (hooks_.interrupted && hooks_.interrupted()) throw Interrupted();
      summary_.row_reads += fit.passes * cache.count();
      summary_.model = fit.parameters.model();
      summary_.noise = std::sqrt(fit.noise_variance);
      summary_.cached_rows = cache.count();
      summary_.fits_exactly = fit.is_exact && cache.count() > options_.unknowns();
      summary_.origin = fmt::format("least squares on {} cached rows", cache.count());
      record(measure_errors(summary_.model, summary_.model), std::sqrt(fit.mean_squared_residual));
      if (fit.is_exact || is_last) report(diagnose_fit(rows, newton, fit.parameters, reader_.pool()));
      if (is_over()) break;
    }
  }

  /// Sets the status from the residuals of the last rows, which were predicted before they were learned.
  void report_residuals() {
    constexpr double max_unexplained_share = 0.5;  // of the variance of the targets
    if (summary_.trace.empty()) return;
    const double residual = summary_.trace.back().residual_rms;
    if (is_converged())
      summary_.status = FitStatus::converged;
    else if (summary_.rows <= options_.unknowns())
      summary_.status = FitStatus::too_few_rows;
    else if (!(residual * residual <= max_unexplained_share * reader_.target_variance()))
      summary_.status = FitStatus::local_minimum;
  }
  [[nodiscard]] bool is_converged() const { return summary_.outcome == Outcome::converged; }

  void report(const FitDiagnosis& diagnosis) {
    summary_.status = diagnosis.status;
    summary_.outliers = diagnosis.outliers;
    const auto norm = [](const auto& errors) {
      return errors.size() > 0 ? errors.norm() : std::numeric_limits<double>::quiet_NaN();
    };
    summary_.standard_error_w = norm(diagnosis.weight_errors);
    summary_.standard_error_M = norm(diagnosis.matrix_errors);
    summary_.standard_error_a = norm(diagnosis.factor_errors);
    if (summary_.fits_exactly) summary_.noise = 0;
  }

  [[nodiscard]] StreamOptions stream_options() const {
    const MomentOptions moment = moment_options(options_);
    StreamOptions stream;
    stream.kalman = kalman_options(moment);
    stream.kalman.square_center = 1;  // E[x_j^2] of planted features
    stream.moment = moment;
    stream.features_are_independent = true;
    // Priors of two candidates: variances of weights and of factors, as shares of the variance of the targets.
    stream.learns_prior = false;
    stream.fixed_priors = {{0.5, 0.03}, {0.5, 0.5}};
    stream.buffered_start.memory = options_.resolved_solver() == Solver::kalman ? 0 : options_.memory;
    stream.buffered_start.searches_starts = true;
    stream.buffered_start.diagnoses = true;
    stream.buffered_start.max_work = std::numeric_limits<double>::infinity();
    stream.buffered_start.interrupted = hooks_.interrupted;
    return stream;
  }

  const RecoverOptions& options_;
  const RecoveryHooks& hooks_;
  RecoverySummary& summary_;
  PlantedReader reader_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Solver RecoverOptions::resolved_solver() const {
  const bool has_moment_options = update || theory || batch || moments != Moments::automatic;
  return solver == Solver::automatic && has_moment_options ? Solver::moment : solver;
}

std::vector<Index> RecoverOptions::cached_row_counts() const {
  if (rows) return {*rows};
  // Multiples of the number of unknowns. Without noise, 1.3 times suffice at any condition number (docs/method.md).
  // More rows are cached as long as the fit does not converge.
  constexpr std::array multiples{1.3, 1.5, 2.0, 3.0, 4.5, 7.0, 10.0};
  std::vector<Index> sizes;
  for (const double multiple : multiples) {
    const auto size = static_cast<Index>(std::ceil(multiple * static_cast<double>(unknowns())));
    if (sizes.empty() || RowCache<double>::bytes_for(static_cast<double>(size),
                                                     static_cast<double>(problem.total_dim()), false) <= memory)
      sizes.push_back(size);
  }
  return sizes;
}

Index RecoverOptions::batch_rows() const {
  const Index default_rows = default_batch_rows_per_kd * problem.kd();
  return batch.value_or(rows ? std::min(default_rows, *rows) : default_rows);
}

Index RecoverOptions::row_budget() const {
  // An error of 1e-6 takes up to 370 kd rows (docs/paper.md). Rank 1 has the slowest convergence per batch, a factor
  // of sqrt(3.5 / 6) = 0.76 at the default batch size: 54 batches reduce the error by a factor of 2e6.
  constexpr Index default_rows_per_kd = 1000;
  constexpr Index min_batches = 60;
  return rows.value_or(std::max(default_rows_per_kd * problem.kd(), min_batches * batch_rows()));
}

Index RecoverOptions::unknowns() const { return problem.shape().unknowns(); }

void RecoverOptions::validate() const {
  problem.validate();
  constexpr Index max_rows = Index{1} << 50;  // products of row counts with small factors do not overflow
  if (rows && (*rows < 1 || *rows > max_rows))
    throw std::invalid_argument("rows must lie in [1, 2^50], got " + std::to_string(*rows));
  if (batch && *batch > max_rows)
    throw std::invalid_argument("batch must be at most 2^50 rows, got " + std::to_string(*batch));
  if (!(tolerance > 0)) throw std::invalid_argument("tolerance must be above 0, got " + std::to_string(tolerance));
  if (!(memory >= 0)) throw std::invalid_argument("memory must be at least 0 bytes, got " + std::to_string(memory));
  const bool has_moment_options = update || theory || batch || moments != Moments::automatic;
  if (has_moment_options && solver != Solver::automatic && solver != Solver::moment)
    throw std::invalid_argument(
        "batch, update, moments and theory are options of the moment solver only; set solver to moment or automatic");
  if (resolved_solver() == Solver::newton) {
    const double needed = RowCache<double>::bytes_for(static_cast<double>(cached_row_counts().front()),
                                                      static_cast<double>(problem.total_dim()), false);
    if (needed > memory)
      throw std::invalid_argument(
          fmt::format("the newton solver caches {} rows, which need {:.0f} bytes, but memory allows {:.0f}; allow more "
                      "memory or use fewer rows",
                      cached_row_counts().front(), needed, memory));
  }
  if (resolved_solver() == Solver::moment && batch_rows() < problem.rank)
    throw std::invalid_argument("batch must have at least as many rows as the rank, " + std::to_string(problem.rank) +
                                ", got " + std::to_string(batch_rows()));
  if (resolved_solver() == Solver::moment && row_budget() < batch_rows())
    throw std::invalid_argument("rows must be at least the size of a batch, " + std::to_string(batch_rows()) +
                                ", got " + std::to_string(row_budget()));
  if (theory && (problem.is_bilinear() || problem.features != FeatureDistribution::gaussian ||
                 problem.diagonal != Diagonal::tied || problem.intercept || problem.outliers > 0))
    throw std::invalid_argument(
        "theory requires the assumptions of the proof: a symmetric problem with Gaussian features, a tied diagonal, "
        "and "
        "neither an intercept nor outliers");
  moment_options(*this).validate();
}

RecoverySummary recover(const RecoverOptions& options, const RecoveryHooks& hooks) {
  options.validate();
  RecoverySummary summary;
  Recovery(options, hooks, summary).run();
  summary.peak_rss_bytes = peak_rss_bytes();
  summary.outcome_text = outcome_text(options, summary);
  return summary;
}

}  // namespace dyad
