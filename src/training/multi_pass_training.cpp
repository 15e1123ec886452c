#include "training/multi_pass_training.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/private_file.h"
#include "solvers/variational/sweeps.h"
#include "training/multi_pass/sampling_fit.h"
#include "training/one_pass/buffered_start.h"

namespace dyad {
namespace {

/// Memory per cached row in addition to the row itself, in bytes: five 8-byte numbers for the weights with and without
/// the held-out rows, predictions and curvature.
constexpr double overhead_bytes_per_row = 40;

/// Largest share of `TrainOptions::memory` for rows cached in memory; larger caches move to disk. The rest is for the
/// arrays of the solvers. Sensitivity: docs/constants.md.
constexpr double max_cached_share = 0.5;

/// Memory size for messages.
std::string size_text(double bytes) {
  return bytes < 1e6 ? fmt::format("{:.0f} KB", bytes / 1e3) : fmt::format("{:.0f} MB", bytes / 1e6);
}

}  // namespace

template <typename Scalar>
MultiPassTraining<Scalar>::MultiPassTraining(const TrainOptions& options, const TrainSettings& settings)
    : options_(options), settings_(settings) {
  const auto& paths = options.data.paths;
  const bool is_stream = std::find(paths.begin(), paths.end(), "-") != paths.end();
  const bool is_possible = settings.solver != Solver::moment && !options.resume && settings.half_life == 0 &&
                           options.memory > 0 && options.passes.value_or(2) > 1;
  if (is_possible && (options.requests_multiple_passes() || !is_stream)) cache_.emplace();
}

template <typename Scalar>
void MultiPassTraining<Scalar>::disable(std::string reason) {
  cache_.reset();
  skip_reason_ = std::move(reason);
}

template <typename Scalar>
std::string MultiPassTraining<Scalar>::plan() const {
  if (!cache_ || (settings_.solver == Solver::kalman && !options_.requests_multiple_passes())) return {};
  if (settings_.solver == Solver::kalman)
    return fmt::format("then up to {} more passes while the loss on held-out rows decreases", *options_.passes - 1);
  if (options_.passes) return fmt::format("then {} more passes over all rows", *options_.passes - 1);
  return fmt::format("then more passes over all rows while the loss on {} rows decreases",
                     options_.validation_path.empty() ? "held-out" : "validation");
}

template <typename Scalar>
void MultiPassTraining<Scalar>::cache_rows(const RowBlock<Scalar>& block) {
  if (!cache_) return;
  is_one_block_ = cache_->count() == 0;
  const Rows<Scalar> rows = block.view();
  if (cache_->count() == 0 && !rows.is_sparse()) dense_dim_ = rows.dim();
  if (cache_->count() == 0 && rows.is_sparse() && block.left_dim == 0) borrow_rows();
  if (!cache_->is_sparse() && cache_->count() > 0 && rows.dim() != dense_dim_)
    return disable(
        "the rows have different numbers of features and cannot be cached, so the model comes from one pass");
  try {
    cache_->append(rows, block.left_dim);
    if (!cache_->is_on_disk() && cache_->bytes() > max_cached_share * options_.memory)
      cache_->move_to_disk(temporary_folder(options_.model_path));
  } catch (const PrivateFileError& error) {
    return disable(fmt::format("{}; the model comes from one pass", error.what()));
  }
  if (static_cast<double>(cache_->count()) * overhead_bytes_per_row > options_.memory)
    disable(
        fmt::format("multi-pass training on {} rows or more needs more than {:.0f} MB of memory, so the model comes "
                    "from one pass; raise `memory` to use more passes",
                    cache_->count(), options_.memory / 1e6));
}

template <typename Scalar>
std::optional<Rows<Scalar>> MultiPassTraining<Scalar>::cached_rows(const ModelShape& shape) {
  if (!cache_ || cache_->count() == 0) return std::nullopt;
  return cache_->view(shape.dim, shape.left_dim);
}

/// Refers to sparse in-memory rows instead of copying them, if their indices are feature indices and all weights are 1.
template <typename Scalar>
void MultiPassTraining<Scalar>::borrow_rows() {
  const DatasetView* dataset = options_.data.dataset;
  if (dataset == nullptr || !dataset->weights.empty() || options_.columns.hash_bits > 0 ||
      options_.columns.index_base > 0)
    return;
  const auto* sparse = std::get_if<SparseView>(&dataset->features);
  if (sparse != nullptr && RowCache<Scalar>::can_borrow(*sparse)) cache_->borrow(*sparse, dataset->count);
}

template <typename Scalar>
bool MultiPassTraining<Scalar>::treats_weights_as_counts(const FeatureMap& map) const {
  return cache_ && options_.data.dataset != nullptr && is_one_block_ && !cache_->is_sparse() && !map.is_measurement();
}

/// Returns null if the requested solver does not fit in the memory limit.
template <typename Scalar>
std::optional<Solver> MultiPassTraining<Scalar>::choose_solver(const ModelShape& shape) {
  if (settings_.solver == Solver::newton) return Solver::newton;
  const auto count = static_cast<double>(cache_->count());
  // Rows on disk are memory-mapped.
  const double cached = cache_->is_on_disk() ? 0 : cache_->bytes();
  const double sampling_bytes =
      cached + estimate_sampling_bytes(count, cache_->entries(), static_cast<double>(shape.dim), shape);
  const double variational_bytes =
      cached + VariationalSweeps<Scalar>::estimate_bytes(count, cache_->entries() / count, shape.rank);
  const bool can_use_sweeps = !cache_->is_on_disk() && variational_bytes <= options_.memory;
  if (settings_.solver == Solver::automatic) {
    if (!cache_->is_sparse()) return Solver::newton;
    const bool can_sample = shape.linear && (shape.is_bilinear() || shape.diagonal != Diagonal::tied);
    if (can_sample && sampling_bytes <= options_.memory && !options_.passes) return Solver::sampling;
    return can_use_sweeps && supports_variational_sweeps(cache_->view(shape.dim, shape.left_dim), shape)
               ? Solver::variational
               : Solver::newton;
  }
  const bool is_sampling = settings_.solver == Solver::sampling;
  if (is_sampling ? sampling_bytes <= options_.memory : can_use_sweeps) return settings_.solver;
  disable(fmt::format(
      "{} over these rows needs {}, more than `memory` allows, so the model comes from one pass; raise `memory`, or "
      "use "
      "the solver newton, which needs less",
      is_sampling ? "sampling" : "variational inference", size_text(is_sampling ? sampling_bytes : variational_bytes)));
  return std::nullopt;
}

template <typename Scalar>
MultiPassResult<Scalar> MultiPassTraining<Scalar>::train_multi_pass(const StreamLearner<Scalar>& learner,
                                                                    FeatureMap& map, ValidationRows<Scalar>& validation,
                                                                    const MultiPassOptions& hooks, ThreadPool& pool) {
  MultiPassOptions options = hooks;
  options.seed = settings_.seed;
  const std::optional<Solver> solver = choose_solver(learner.filter().options().shape);
  if (!solver) return {};
  solver_ = options.solver = *solver;
  options.has_exact_weights = treats_weights_as_counts(map) && solver == Solver::newton;
  options.can_select_one_pass = settings_.solver == Solver::automatic && !options.has_exact_weights;
  if (options_.passes && *solver != Solver::sampling) options.levels = *options_.passes - 1;
  options.samples = options_.samples;
  options.groups = map.prior_groups();
  options.discovers_groups = (map.layout == Layout::sparse && !map.index_groups) || map.hash_bits > 0;
  const Target& target = map.target;
  options.loss = [&target](double y, double f) { return target.score(y, f); };
  std::optional<RowCache<Scalar>> validation_rows;
  if (!options.levels) validation_rows = validation.copy(map);
  return dyad::train_multi_pass(learner, *cache_, validation_rows ? &*validation_rows : nullptr, options, pool);
}

template <typename Scalar>
std::optional<FitDiagnosis> MultiPassTraining<Scalar>::diagnose(const KalmanFilter<Scalar>& filter,
                                                                const std::function<bool()>& interrupted,
                                                                ThreadPool& pool) {
  const ModelShape& shape = filter.options().shape;
  const bool is_supported = shape.is_measurement() || (shape.is_bilinear() && cache_ && !cache_->is_sparse());
  if (!cache_ || !is_supported || !filter.options().likelihood->has_unit_curvature()) return std::nullopt;
  NewtonOptions options = newton_options(filter.options());
  options.interrupted = interrupted;
  const SignedFactors<double> parameters = filter.posterior().means.template cast<double>();
  const ObservedRows rows(cache_->view(shape.dim, shape.left_dim));
  const double rms = compute_residuals(rows, parameters, pool).norm() / std::sqrt(static_cast<double>(rows.count()));
  if (shape.is_bilinear() && !(rms <= min_residual_scale(rows))) return std::nullopt;
  return diagnose_fit(rows, options, parameters, pool);
}

template class MultiPassTraining<float>;
template class MultiPassTraining<double>;

}  // namespace dyad
