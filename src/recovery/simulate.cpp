#include <dyad/simulate.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "base/file_paths.h"
#include "base/output_file.h"
#include "base/peak_memory.h"
#include "base/thread_pool.h"
#include "data/row_block.h"
#include "io/row_text.h"
#include "recovery/planted_problem.h"
#include "serialization/model_file.h"

namespace dyad {
namespace {

/// The planted model as a model file for rows of this format. Its residuals on these rows are the noise plus the term
/// x'Rz of the residual spectrum R.
ModelFile planted_model_file(const PlantedProblem& problem, Format format) {
  const PlantedOptions& options = problem.options();
  ModelFile file;
  FeatureMap& map = file.features;
  map.kind = options.kind;
  map.layout = layout_of(format);
  if (map.layout == Layout::table) map.target.name = planted_target_name;
  map.index_base = map.layout == Layout::sparse ? 1 : 0;
  if (options.is_bilinear() && map.layout != Layout::table) map.right_first = options.dim + map.index_base;
  std::vector<Column> columns;
  if (map.layout != Layout::sparse) {
    const std::vector<std::string> names = planted_feature_names(options);
    for (Index j = 0; j < options.total_dim(); ++j) {
      columns.emplace_back();
      columns.back().name = map.layout == Layout::table ? names[static_cast<std::size_t>(j)] : std::to_string(j);
      columns.back().is_right = options.is_bilinear() && j >= options.dim;
    }
  }
  map.restore(std::move(columns), options.dim, options.right_dim, {});
  file.model = problem.truth();
  file.training = {{"solver", "planted"},
                   {"seed", std::to_string(options.seed)},
                   {"noise", fmt::format("{}", options.noise)},
                   {"residual", fmt::format("{}", options.residual)}};
  return file;
}

/// Writes rows to a file, and targets to a second file if the format is npy. Does not own the options and the pool.
class RowWriter {
 public:
  RowWriter(const SimulateOptions& options, ThreadPool& pool)
      : options_(options), pool_(pool), rows_(options.path), texts_(static_cast<std::size_t>(pool.count())) {
    write(rows_, make_header(options.problem, options.format, options.rows));
    if (options.format == Format::npy) {
      targets_.emplace(options.target_path);
      write(*targets_, make_npy_header(options.rows, 0));
    }
  }

  void append(const DenseBlock<double>& block) {
    pool_.split(static_cast<Index>(block.targets.size()), [&](int worker, IndexRange range) {
      std::string& text = texts_[static_cast<std::size_t>(worker)];
      text.clear();
      append_rows(options_.format, block, range.first, range.count, text);
    });
    for (const std::string& text : texts_) write(rows_, text);
    if (targets_)
      write(*targets_, {reinterpret_cast<const char*>(block.targets.data()), block.targets.size() * sizeof(double)});
  }

  void commit() {
    rows_.commit();
    if (targets_) targets_->commit();
  }

  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  void write(OutputFile& file, std::string_view bytes) {
    file.write(bytes);
    bytes_ += static_cast<std::int64_t>(bytes.size());
  }

  const SimulateOptions& options_;
  ThreadPool& pool_;
  OutputFile rows_;
  std::optional<OutputFile> targets_;
  std::vector<std::string> texts_;  ///< formatted rows, one buffer per thread
  std::int64_t bytes_ = 0;
};

}  // namespace

void SimulateOptions::validate() const {
  problem.validate();
  if (rows < 1) throw std::invalid_argument("rows must be at least 1, got " + std::to_string(rows));
  if (path.empty()) throw std::invalid_argument("path is empty; expected an output file, or - for standard output");
  if ((format == Format::npy) == target_path.empty())
    throw std::invalid_argument("target_path is required for the format npy, and must be empty for all other formats");
  require_distinct_files({{path, "the rows"}, {target_path, "the targets"}, {truth_path, "the planted model"}});
  ThreadPool::require_valid_count(threads);
}

SimulateSummary simulate(const SimulateOptions& options, const SimulateHooks& hooks) {
  options.validate();
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const PlantedProblem problem(options.problem);
  SimulateSummary summary;
  ThreadPool pool(options.threads);
  RowWriter writer(options, pool);
  std::optional<OutputFile> truth;  // opened before the rows are generated, so that errors are reported early
  if (!options.truth_path.empty()) truth.emplace(options.truth_path);
  DenseBlock<double> block;
  const Index max_block_rows = rows_per_block(options.problem.total_dim(), sizeof(double));
  while (summary.rows < options.rows) {
    if (hooks.interrupted && hooks.interrupted()) {
      summary.outcome = Outcome::interrupted;
      break;
    }
    const Index count = std::min(max_block_rows, options.rows - summary.rows);
    problem.generate(summary.rows, count, pool, block);
    writer.append(block);
    summary.rows += count;
    summary.bytes = writer.bytes();
    summary.seconds = elapsed();
    if (hooks.progress) hooks.progress(summary);
  }
  if (summary.outcome != Outcome::interrupted) {
    if (truth) truth->write(planted_model_file(problem, options.format).to_bytes());
    writer.commit();
    if (truth) truth->commit();
  }
  summary.seconds = elapsed();
  summary.peak_rss_bytes = peak_rss_bytes();
  return summary;
}

}  // namespace dyad
