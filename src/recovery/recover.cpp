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
#include "solvers/gauss_newton/gauss_newton.h"
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

class Interrupted {};

/// The planted rows, in order. Any of them can be read again.
class PlantedReader {
 public:
  PlantedReader(const RecoverOptions& options, const RecoveryHooks& hooks)
      : problem_(options.problem), hooks_(hooks), pool_(options.threads) {}

  [[nodiscard]] const Model<double>& truth() const { return problem_.truth(); }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index row_reads() const { return row_reads_; }
  [[nodiscard]] ThreadPool& pool() { return pool_; }

  void visit(Index first, Index total, const std::function<void(const Rows<double>&)>& visitor) {
    const Index most = block_rows(truth().dim(), sizeof(double));
    for (Index done = 0; done < total; done += most) {
      if (hooks_.interrupted && hooks_.interrupted()) throw Interrupted();
      const Index count = std::min(most, total - done);
      problem_.read(first + done, count, pool_, block_);
      row_reads_ += count;
      rows_ = std::max(rows_, first + done + count);
      visitor(block_.view());
    }
  }

  /// So many new rows, to be read as often as one likes.
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
};

/// `model` gives the errors, `leading` the k directions for the angle.
RecoveryPoint measure(const Model<double>& model, const Model<double>& leading, const Model<double>& truth, Kind kind) {
  RecoveryPoint point;
  point.error_w = (as_vector(model.weights) - as_vector(truth.weights)).norm();
  point.error_M = interaction_error(model, truth);
  point.error_squares = square_error(model, truth);
  point.error_b = std::abs(model.intercept - truth.intercept);
  point.error_a = kind == Kind::phase ? amplitude_error(leading, truth) : 0;
  point.tan_theta = tan_largest_angle(leading, truth);
  return point;
}

/// Much further from the truth than the zero model.
bool lost(const RecoveryPoint& point, const Model<double>& truth) {
  return point.error() > 10 * (as_vector(truth.weights).norm() + as_vector(truth.spectrum).cwiseAbs().maxCoeff());
}

/// One face for both updates.
class MomentSolver {
 public:
  explicit MomentSolver(const RecoverOptions& options) {
    if (options.update.value_or(Update::one_scan) == Update::one_scan)
      one_scan_.emplace(moment_options(options));
    else
      paper_.emplace(moment_options(options));
  }

  BatchReport learn(const Batch<double>& batch) {
    if (paper_) return paper_->update(batch);
    batch([&](const Rows<double>& rows) { one_scan_->observe(rows); });
    return one_scan_->update();
  }

  [[nodiscard]] const Model<double>& model() const { return paper_ ? paper_->model() : one_scan_->model(); }
  [[nodiscard]] const Model<double>& full_model() const { return paper_ ? paper_->full_model() : one_scan_->model(); }
  /// The next batch is for the truncated SVD alone, and no update.
  [[nodiscard]] bool only_starts() const { return paper_ && !paper_->started(); }
  [[nodiscard]] Moments moments() const { return paper_ ? paper_->moments() : one_scan_->moments(); }

 private:
  std::optional<OneScanSolver<double>> one_scan_;
  std::optional<PaperSolver<double>> paper_;
};

/// Learns until the error, the rows, the numbers or the user's patience end.
class Recovery {
 public:
  Recovery(const RecoverOptions& options, const RecoveryHooks& hooks, RecoverySummary& summary)
      : options_(options), hooks_(hooks), summary_(summary), reader_(options, hooks) {}

  void run() {
    try {
      switch (options_.chosen_solver()) {
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
          lost(summary_.trace.back(), reader_.truth()))
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
  [[nodiscard]] RecoveryPoint measured(const Model<double>& model, const Model<double>& leading) const {
    return measure(model, leading, reader_.truth(), options_.problem.kind);
  }
  [[nodiscard]] bool is_over() const { return summary_.outcome != Outcome::budget; }

  void begin_with_nothing() {
    const ModelShape shape = options_.problem.shape();
    summary_.model = Model<double>(shape.dim, shape.rank, shape.left_dim);
    if (shape.diagonal != Diagonal::tied) summary_.model.squares.resize(summary_.model.weights.size());
    summary_.start = measured(summary_.model, summary_.model);
  }

  void note(RecoveryPoint point, double residual_rms) {
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
    summary_.start = measured(solver.full_model(), solver.model());
    summary_.model = solver.model();
    summary_.origin = "by the moments of batches";
    while (!is_over() && reader_.rows() + options_.batch_rows() <= options_.row_budget()) {
      const Batch<double> batch = reader_.next(options_.batch_rows());
      std::optional<TheoryPoint> theory;
      if (options_.theory && !solver.only_starts())
        theory = measure_theory(solver.full_model(), reader_.truth(), measured(solver.full_model(), solver.model()),
                                batch, reader_.pool());
      const BatchReport report = solver.learn(batch);
      // The proof speaks of all of M, everything else of the rank-k part that is exported.
      RecoveryPoint point = measured(options_.theory ? solver.full_model() : solver.model(), solver.model());
      point.theory = theory;
      summary_.model = solver.model();
      note(point, report.residual_rms);
      if (!report.accepted) summary_.outcome = Outcome::diverged;
      if (std::isfinite(report.residual_rms)) summary_.noise = report.residual_rms;
    }
    summary_.moments = solver.moments();
  }

  void run_stream() {
    StreamLearner<double> learner(stream_options(), reader_.pool());
    begin_with_nothing();
    std::vector<double> predictions;
    while (!is_over() && reader_.rows() < options_.row_budget()) {
      const auto step = std::max<Index>({1, options_.problem.kd() / 4, reader_.rows() / 16});
      const Batch<double> batch = reader_.next(std::min(step, options_.row_budget() - reader_.rows()));
      double squares = 0;
      Index count = 0;
      batch([&](const Rows<double>& rows) {
        predictions.resize(static_cast<std::size_t>(rows.count()));
        learner.learn(rows, predictions);
        for (std::size_t i = 0; i < predictions.size(); ++i) squares += std::pow(rows.targets()[i] - predictions[i], 2);
        count += rows.count();
      });
      summary_.model = learner.model();
      summary_.noise = std::sqrt(learner.noise_variance());
      summary_.origin = learner.origin();
      note(measured(summary_.model, summary_.model), std::sqrt(squares / static_cast<double>(count)));
      if (!summary_.model.is_finite()) summary_.outcome = Outcome::diverged;
    }
    summary_.row_reads += learner.extra_row_reads();
    summary_.cached_rows = learner.solved_rows();
    summary_.fits_exactly = learner.fits_exactly() && summary_.cached_rows > options_.unknowns();
  }

  void run_newton() {
    begin_with_nothing();
    NewtonOptions newton = newton_options(kalman_options(moment_options(options_)));
    newton.interrupted = hooks_.interrupted;
    RowCache<double> kept;
    for (const Index size : options_.kept_sizes()) {
      reader_.next(size - kept.count())([&](const Rows<double>& rows) { kept.append(rows); });
      const NewtonFit fit = gauss_newton(kept.view(newton.shape.dim), newton, reader_.pool());
      if (hooks_.interrupted && hooks_.interrupted()) throw Interrupted();
      summary_.row_reads += fit.products * kept.count();
      summary_.model = fit.parameters.model();
      const auto spare = static_cast<double>(kept.count() - options_.unknowns());
      summary_.noise = std::sqrt(fit.residual_squares * static_cast<double>(kept.count()) / std::max(1.0, spare));
      summary_.cached_rows = kept.count();
      summary_.fits_exactly = fit.exact && kept.count() > options_.unknowns();
      summary_.origin = fmt::format("from {} cached rows", kept.count());
      note(measured(summary_.model, summary_.model), std::sqrt(fit.residual_squares));
      if (is_over()) break;
    }
  }

  [[nodiscard]] StreamOptions stream_options() const {
    const MomentOptions moment = moment_options(options_);
    StreamOptions stream;
    stream.kalman = kalman_options(moment);
    stream.kalman.square_centre = 1;
    stream.moment = moment;
    stream.batch = options_.batch_rows();
    stream.features_are_independent = true;
    stream.priors = {{0.5, 0.03}, {0.5, 0.5}};
    stream.keep.memory = options_.chosen_solver() == Solver::kalman ? 0 : options_.memory;
    stream.keep.sign_restarts = true;
    stream.keep.most_work = std::numeric_limits<double>::infinity();
    stream.keep.interrupted = hooks_.interrupted;
    return stream;
  }

  const RecoverOptions& options_;
  const RecoveryHooks& hooks_;
  RecoverySummary& summary_;
  PlantedReader reader_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Solver RecoverOptions::chosen_solver() const {
  const bool of_moments = update || theory || batch || moments != Moments::automatic;
  return solver == Solver::automatic && of_moments ? Solver::moment : solver;
}

std::vector<Index> RecoverOptions::kept_sizes() const {
  if (rows) return {*rows};
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
  const Index usual = 6 * problem.kd();
  return batch.value_or(rows ? std::min(usual, *rows) : usual);
}

Index RecoverOptions::row_budget() const { return rows.value_or(std::max(1000 * problem.kd(), 60 * batch_rows())); }

Index RecoverOptions::unknowns() const { return problem.shape().unknowns(); }

void RecoverOptions::validate() const {
  problem.validate();
  constexpr Index most_rows = Index{1} << 50;
  if (rows && (*rows < 1 || *rows > most_rows))
    throw std::invalid_argument("rows must lie in [1, 2^50], got " + std::to_string(*rows));
  if (batch && *batch > most_rows)
    throw std::invalid_argument("a batch must have at most 2^50 rows, got " + std::to_string(*batch));
  if (!(tolerance > 0)) throw std::invalid_argument("tolerance must be above 0, got " + std::to_string(tolerance));
  if (!(memory >= 0)) throw std::invalid_argument("memory must be at least 0 bytes, got " + std::to_string(memory));
  const bool of_moments = update || theory || batch || moments != Moments::automatic;
  if (of_moments && solver != Solver::automatic && solver != Solver::moment)
    throw std::invalid_argument("batch, update, moments and theory go with the moment solver");
  if (chosen_solver() == Solver::newton) {
    const double needed = RowCache<double>::bytes_for(static_cast<double>(kept_sizes().front()),
                                                      static_cast<double>(problem.total_dim()), false);
    if (needed > memory)
      throw std::invalid_argument(fmt::format("newton keeps {} rows, which take {:.0f} bytes, but memory allows {:.0f}",
                                              kept_sizes().front(), needed, memory));
  }
  if (chosen_solver() == Solver::moment && batch_rows() < problem.rank)
    throw std::invalid_argument("a batch must have at least as many rows as the rank, " + std::to_string(problem.rank) +
                                ", got " + std::to_string(batch_rows()));
  if (chosen_solver() == Solver::moment && row_budget() < batch_rows())
    throw std::invalid_argument("rows must be enough for one batch, " + std::to_string(batch_rows()) + ", got " +
                                std::to_string(row_budget()));
  if (theory && (problem.is_bilinear() || problem.features != Features::gaussian ||
                 problem.diagonal != Diagonal::tied || problem.noise > 0 || problem.residual > 0 || problem.intercept))
    throw std::invalid_argument(
        "theory goes with what the proof covers: a symmetric problem with Gaussian features, a tied diagonal and no "
        "noise, residual spectrum or intercept");
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
