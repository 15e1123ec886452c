#include <dyad/recover.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include <dyad/moment.h>

#include "base/workers.h"
#include "fit/peak_memory.h"
#include "fit/recovery_error.h"
#include "fit/verdict.h"
#include "rows/block.h"
#include "source/planted.h"

namespace dyad {
namespace {

MomentOptions moment_options(const RecoverOptions& options) {
  MomentOptions moment;
  moment.dim = options.problem.dim;
  moment.rank = options.problem.rank;
  moment.linear = options.problem.kind == Kind::gfm;
  moment.intercept = options.problem.intercept.has_value();
  moment.positive = options.problem.kind == Kind::phase || options.problem.signs == Signs::positive;
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

RecoveryPoint measure(const Model<double>& model, const Model<double>& truth, Kind kind) {
  RecoveryPoint point;
  point.error_w = (as_vector(model.weights) - as_vector(truth.weights)).norm();
  point.error_M = interaction_error(model, truth);
  point.error_b = std::abs(model.intercept - truth.intercept);
  point.error_a = kind == Kind::phase ? amplitude_error(model, truth) : 0;
  point.tan_theta = tan_largest_angle(model, truth);
  return point;
}

/// Much further from the truth than the zero model.
bool lost(const RecoveryPoint& point, const Model<double>& truth) {
  return point.error() > 10 * (as_vector(truth.weights).norm() + as_vector(truth.spectrum).cwiseAbs().maxCoeff());
}

/// Calls advance(batch) until the error, the rows, the numbers or the user's patience end.
template <typename Solver, typename Advance>
void run(const RecoverOptions& options, const RecoveryHooks& hooks, Solver& solver, Advance&& advance,
         RecoverySummary& summary) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  BatchReader reader(options, hooks);
  try {
    while (reader.rows() + options.batch_rows() <= options.row_budget()) {
      const BatchReport report = advance(solver, reader.next());
      summary.rows = reader.rows();
      RecoveryPoint point = measure(solver.model(), reader.truth(), options.problem.kind);
      point.rows = summary.rows;
      point.residual_rms = report.residual_rms;
      point.seconds = elapsed();
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
  summary.model = solver.model();
}

}  // namespace

Index RecoverOptions::batch_rows() const {
  const Index usual = 6 * problem.rank * problem.dim;
  return batch.value_or(rows ? std::min(usual, *rows) : usual);
}

Index RecoverOptions::row_budget() const {
  return rows.value_or(std::max(1000 * problem.rank * problem.dim, batch_rows()));
}

Index RecoverOptions::unknowns() const {
  const Index k = problem.rank;
  return k * problem.dim - k * (k - 1) / 2 + (problem.kind == Kind::gfm ? problem.dim : 0) +
         (problem.intercept ? 1 : 0);
}

void RecoverOptions::validate() const {
  problem.validate();
  if (!(tolerance > 0)) throw std::invalid_argument("tolerance must be above 0, got " + std::to_string(tolerance));
  if (batch_rows() < problem.rank)
    throw std::invalid_argument("a batch must have at least as many rows as the rank, " + std::to_string(problem.rank) +
                                ", got " + std::to_string(batch_rows()));
  if (row_budget() < batch_rows())
    throw std::invalid_argument("rows must be enough for one batch, " + std::to_string(batch_rows()) + ", got " +
                                std::to_string(row_budget()));
  moment_options(*this).validate();
}

RecoverySummary recover(const RecoverOptions& options, const RecoveryHooks& hooks) {
  options.validate();
  RecoverySummary summary;
  if (options.update == Update::one_scan) {
    OneScanSolver<double> solver(moment_options(options));
    const auto advance = [](OneScanSolver<double>& one_scan, const Batch<double>& batch) {
      batch([&](const Rows<double>& rows) { one_scan.observe(rows); });
      return one_scan.update();
    };
    run(options, hooks, solver, advance, summary);
  } else {
    PaperSolver<double> solver(moment_options(options));
    const auto advance = [](PaperSolver<double>& paper, const Batch<double>& batch) { return paper.update(batch); };
    run(options, hooks, solver, advance, summary);
  }
  if (!summary.trace.empty()) summary.noise = summary.trace.back().residual_rms;
  summary.peak_rss_bytes = peak_rss_bytes();
  summary.verdict = verdict(options, summary);
  return summary;
}

}  // namespace dyad
