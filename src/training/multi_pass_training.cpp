#include "training/multi_pass_training.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/private_file.h"
#include "solvers/variational/sweeps.h"

namespace dyad {
namespace {

/// For each row, beside the row itself: weights of what is held out and what is not, predictions, curvature.
constexpr double bytes_beside_row = 40;

std::string in_bytes(double bytes) {
  return bytes < 1e6 ? fmt::format("{:.0f} KB", bytes / 1e3) : fmt::format("{:.0f} MB", bytes / 1e6);
}

}  // namespace

template <typename Scalar>
MultiPassTraining<Scalar>::MultiPassTraining(const TrainOptions& options, const TrainSettings& settings)
    : options_(options), settings_(settings) {
  const auto& paths = options.data.paths;
  const bool is_stream = std::find(paths.begin(), paths.end(), "-") != paths.end();
  const bool can_be = settings.solver != Solver::moment && settings.solver != Solver::kalman && !options.resume &&
                      settings.half_life == 0 && options.memory > 0 && options.passes.value_or(2) > 1;
  if (can_be && (options.asks_to_read_again() || !is_stream)) kept_.emplace();
}

template <typename Scalar>
void MultiPassTraining<Scalar>::give_up(std::string why) {
  kept_.reset();
  why_not_ = std::move(why);
}

template <typename Scalar>
std::string MultiPassTraining<Scalar>::plan() const {
  if (!kept_) return {};
  if (options_.passes) return fmt::format("then {} more looks at all rows", *options_.passes - 1);
  return fmt::format("then all rows again, as long as {} get better",
                     options_.validation_path.empty() ? "held-out rows" : "the validation rows");
}

template <typename Scalar>
void MultiPassTraining<Scalar>::keep(const RowBlock<Scalar>& block) {
  if (!kept_) return;
  is_one_block_ = kept_->count() == 0;
  const Rows<Scalar> rows = block.view();
  if (kept_->count() == 0 && !rows.is_sparse()) dense_dim_ = rows.dim();
  if (kept_->count() == 0 && rows.is_sparse() && block.left_dim == 0) borrow_rows();
  if (!kept_->is_sparse() && kept_->count() > 0 && rows.dim() != dense_dim_)
    return give_up("rows of different lengths cannot be kept");
  try {
    kept_->append(rows, block.left_dim);
    if (!kept_->is_on_disk() && kept_->bytes() > options_.memory / 2)
      kept_->move_to_disk(folder_for_private_files(options_.model_path));
  } catch (const PrivateFileError& error) {
    return give_up(fmt::format("{}; the model comes from one pass", error.what()));
  }
  if (static_cast<double>(kept_->count()) * bytes_beside_row > options_.memory)
    give_up(
        fmt::format("to read {} rows and more again takes more than {:.0f} MB of memory, so the model comes from one "
                    "pass; see --memory",
                    kept_->count(), options_.memory / 1e6));
}

/// Sparse rows in memory whose indices are features already.
template <typename Scalar>
void MultiPassTraining<Scalar>::borrow_rows() {
  const MemoryRows* memory = options_.data.memory;
  if (memory == nullptr || !memory->weights.empty() || options_.columns.hash_bits > 0 ||
      options_.columns.index_base > 0)
    return;
  const auto* sparse = std::get_if<MemorySparse>(&memory->features);
  if (sparse != nullptr && RowCache<Scalar>::can_borrow(*sparse)) kept_->borrow(*sparse, memory->count);
}

template <typename Scalar>
bool MultiPassTraining<Scalar>::counts_exactly(const FeatureMap& map) const {
  return kept_ && options_.data.memory != nullptr && is_one_block_ && !kept_->is_sparse() && !map.is_measurement();
}

/// Nothing where what was asked for cannot be.
template <typename Scalar>
std::optional<Solver> MultiPassTraining<Scalar>::chosen_solver(const ModelShape& shape) {
  if (settings_.solver == Solver::newton) return Solver::newton;
  const auto count = static_cast<double>(kept_->count());
  const double needed =
      kept_->bytes() + VariationalSweeps<Scalar>::bytes_for(count, kept_->entries() / count, shape.rank);
  const bool fits = !kept_->is_on_disk() && needed <= options_.memory;
  if (settings_.solver == Solver::automatic) {
    const bool sweeps = fits && kept_->is_sparse() && can_sweep(kept_->view(shape.dim, shape.left_dim), shape);
    return sweeps ? Solver::variational : Solver::newton;
  }
  if (fits) return Solver::variational;
  give_up(
      fmt::format("variational sweeps over these rows take {}, more than --memory allows, so the model comes from one "
                  "pass; newton takes less",
                  in_bytes(needed)));
  return std::nullopt;
}

template <typename Scalar>
RefineResult<Scalar> MultiPassTraining<Scalar>::refine(const StreamLearner<Scalar>& learner, FeatureMap& map,
                                                       ValidationRows<Scalar>& validation, const RefineOptions& hooks,
                                                       ThreadPool& pool) {
  RefineOptions options = hooks;
  options.seed = settings_.seed;
  const std::optional<Solver> solver = chosen_solver(learner.filter().options().shape);
  if (!solver) return {};
  solver_ = options.solver = *solver;
  options.exact_weights = counts_exactly(map) && solver == Solver::newton;
  options.may_decline = settings_.solver == Solver::automatic && !options.exact_weights;
  if (options_.passes) options.levels = *options_.passes - 1;
  const Target& target = map.target;
  options.loss = [&target](double y, double f) { return target.score(y, f); };
  std::optional<RowCache<Scalar>> validation_rows;
  if (!options.levels) validation_rows = validation.copy(map);
  return dyad::refine(learner, *kept_, validation_rows ? &*validation_rows : nullptr, options, pool);
}

template class MultiPassTraining<float>;
template class MultiPassTraining<double>;

}  // namespace dyad
