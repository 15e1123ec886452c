#include <dyad/recover.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <stdexcept>

#include <dyad/moment.h>

#include "base/workers.h"
#include "fit/peak_memory.h"
#include "fit/recovery_error.h"
#include "fit/theory.h"
#include "fit/verdict.h"
#include "rows/block.h"
#include "source/planted.h"

namespace dyad {
namespace {

MomentOptions moment_options(const RecoverOptions& options) {
  MomentOptions moment;
  moment.dim = options.problem.total_dim();
  moment.left_dim = options.problem.left_dim();
  moment.rank = options.problem.rank;
  moment.linear = options.problem.has_weights();
  moment.intercept = options.problem.intercept.has_value();
  moment.positive = options.problem.kind == Kind::phase || options.problem.signs == Signs::positive;
  moment.diagonal = options.problem.diagonal;
  moment.moments = options.moments;
  moment.threads = options.threads;
  moment.seed = options.problem.seed;
  return moment;
}

class Interrupted {};

/// The planted rows, one batch after the other; each batch can be read again.
class BatchReader {
 public:
  BatchReader(const RecoverOptions& options, const RecoveryHooks& hooks)
      : problem_(options.problem), hooks_(hooks), workers_(options.threads), batch_rows_(options.batch_rows()) {}

  [[nodiscard]] const Model<double>& truth() const { return problem_.truth(); }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index row_reads() const { return row_reads_; }
  [[nodiscard]] Workers& workers() { return workers_; }

  Batch<double> next() {
    const Index first = rows_;
    rows_ += batch_rows_;
    return [this, first](const std::function<void(const Rows<double>&)>& visitor) {
      const Index most = block_rows(truth().dim(), sizeof(double));
      for (Index done = 0; done < batch_rows_; done += most) {
        if (hooks_.interrupted && hooks_.interrupted()) throw Interrupted();
        const Index count = std::min(most, batch_rows_ - done);
        problem_.read(first + done, count, workers_, block_);
        row_reads_ += count;
        visitor(block_.view());
      }
    };
  }

 private:
  PlantedProblem problem_;
  const RecoveryHooks& hooks_;
  Workers workers_;
  DenseBlock<double> block_;
  Index batch_rows_;
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
class Learner {
 public:
  explicit Learner(const RecoverOptions& options) {
    if (options.update == Update::one_scan)
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

/// Learns batch after batch until the error, the rows, the numbers or the user's patience end.
void run(const RecoverOptions& options, const RecoveryHooks& hooks, RecoverySummary& summary) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  BatchReader reader(options, hooks);
  Learner learner(options);
  const Kind kind = options.problem.kind;
  summary.start = measure(learner.full_model(), learner.model(), reader.truth(), kind);
  try {
    while (reader.rows() + options.batch_rows() <= options.row_budget()) {
      const Batch<double> batch = reader.next();
      std::optional<TheoryPoint> theory;
      if (options.theory && !learner.only_starts())
        theory = measure_theory(learner.full_model(), reader.truth(),
                                measure(learner.full_model(), learner.model(), reader.truth(), kind), batch,
                                reader.workers());
      const BatchReport report = learner.learn(batch);
      summary.rows = reader.rows();
      // The proof speaks of all of M, everything else of the rank-k part that is exported.
      const Model<double>& measured = options.theory ? learner.full_model() : learner.model();
      RecoveryPoint point = measure(measured, learner.model(), reader.truth(), kind);
      point.rows = summary.rows;
      point.residual_rms = report.residual_rms;
      point.seconds = elapsed();
      point.theory = theory;
      summary.trace.push_back(point);
      if (hooks.progress) hooks.progress(point);
      if (!report.accepted) {
        summary.outcome = Outcome::diverged;
        break;
      }
      if (point.error() <= options.tolerance) {
        summary.outcome = Outcome::converged;
        break;
      }
    }
    if (summary.outcome == Outcome::budget && lost(summary.trace.back(), reader.truth()))
      summary.outcome = Outcome::diverged;
  } catch (const Interrupted&) {
    summary.outcome = Outcome::interrupted;
  }
  summary.row_reads = reader.row_reads();
  summary.seconds = elapsed();
  summary.moments = learner.moments();
  summary.model = learner.model();
}

}  // namespace

Index RecoverOptions::batch_rows() const {
  const Index usual = 6 * problem.kd();
  return batch.value_or(rows ? std::min(usual, *rows) : usual);
}

Index RecoverOptions::row_budget() const { return rows.value_or(std::max(1000 * problem.kd(), 60 * batch_rows())); }

Index RecoverOptions::unknowns() const {
  const Index k = problem.rank;
  const Index d = problem.total_dim();
  const Index of_M = problem.is_bilinear() ? k * (d - k) : k * d - k * (k - 1) / 2;
  return of_M + (problem.has_weights() ? d : 0) + (problem.diagonal == Diagonal::free ? d : 0) +
         (problem.intercept ? 1 : 0);
}

void RecoverOptions::validate() const {
  problem.validate();
  constexpr Index most_rows = Index{1} << 50;
  if (rows && (*rows < 1 || *rows > most_rows))
    throw std::invalid_argument("rows must lie in [1, 2^50], got " + std::to_string(*rows));
  if (batch && *batch > most_rows)
    throw std::invalid_argument("a batch must have at most 2^50 rows, got " + std::to_string(*batch));
  if (!(tolerance > 0)) throw std::invalid_argument("tolerance must be above 0, got " + std::to_string(tolerance));
  if (batch_rows() < problem.rank)
    throw std::invalid_argument("a batch must have at least as many rows as the rank, " + std::to_string(problem.rank) +
                                ", got " + std::to_string(batch_rows()));
  if (row_budget() < batch_rows())
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
  run(options, hooks, summary);
  for (const RecoveryPoint& point : summary.trace)
    if (std::isfinite(point.residual_rms)) summary.noise = point.residual_rms;
  summary.peak_rss_bytes = peak_rss_bytes();
  summary.verdict = verdict(options, summary);
  return summary;
}

}  // namespace dyad
