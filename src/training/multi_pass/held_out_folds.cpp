#include "training/multi_pass/held_out_folds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "data/row_hash.h"
#include "solvers/gauss_newton/moment_start.h"
#include "training/one_pass/buffered_start.h"

namespace dyad {
namespace {

/// Below this number of rows every row is held out by one of the cross-validation folds. Above it, a tenth of the rows
/// (500 or more) estimates the loss, and one fold is trained instead of five. Sensitivity: docs/constants.md.
constexpr Index min_rows_for_single_fold = 5000;
constexpr int cross_validation_folds = 5;
/// Number of parameters from which there is one fold for any number of rows. It bounds the memory and time of solvers.
/// Sensitivity: docs/constants.md.
constexpr Index min_parameters_for_single_fold = 100'000;
/// Fraction of the rows that a single fold holds out if there are at least `min_rows_for_single_fold` rows.
/// Sensitivity: docs/constants.md.
constexpr double held_out_fraction = 0.1;
/// Lower bound of the noise variance at the start of the pass of a fold, if the first pass has fitted all rows exactly.
/// Sensitivity: docs/constants.md.
constexpr double min_start_noise_variance = 1e-12;
/// Number of non-zeros between two checks for an interruption: 0.2 s for nine filters of rank 8.
constexpr double max_fold_block_entries = 1 << 20;
/// Maximum number of rows between two checks for an interruption. Sensitivity: docs/constants.md.
constexpr Index max_fold_block_rows = 8192;

/// Hash of the features and the target of a row, rounded to a grid so that dividing by the scales and multiplying again
/// does not change it.
template <typename Scalar>
std::uint64_t rounded_hash(const Rows<Scalar>& rows, Index i) {
  RowHash hash;
  const auto add = [&](std::uint64_t column, Scalar value) {
    // Values have a size of about 1 and rounding errors of up to 2^-23 (float), an eighth of the grid spacing 2^-20.
    constexpr double grid_points_per_unit = 1 << 20;
    // std::round changes at odd multiples of one half. The offset keeps multiples of the spacing, such as integers, at
    // a distance of 0.13 spacings from these points.
    constexpr double offset = 0.3717;
    hash.add(column, std::round(static_cast<double>(value) * grid_points_per_unit + offset));
  };
  add(RowHash::target_column, rows.targets()[static_cast<std::size_t>(i)]);
  rows.for_each_entry(i, [&](Index j, Scalar x) { add(static_cast<std::uint64_t>(j), x); });
  return hash.value();
}

}  // namespace

template <typename Scalar>
Posterior<double> order_invariant_start(const Rows<Scalar>& rows, const KalmanOptions& kalman, ThreadPool& pool) {
  const NewtonOptions options = newton_options(kalman);
  return {compute_moment_start(rows, options, pool).to_parameters(options), {}};
}

template <typename Scalar>
Posterior<double> balanced_posterior(const KalmanFilter<Scalar>& filter) {
  Posterior<double> posterior = filter.posterior().template cast<double>();
  if (!filter.learns_prior() || !filter.groups().one_feature_per_row) return posterior;
  const std::vector<std::int32_t> groups = filter.feature_groups();
  std::vector<double> counts(static_cast<std::size_t>(filter.groups().count));
  std::vector<double> squares(counts.size());
  for (std::size_t j = 0; j < groups.size(); ++j) {
    const auto row = static_cast<Index>(j);
    const auto group = static_cast<std::size_t>(groups[j]);
    if (!(filter.feature_posterior(row).scale > 0)) continue;
    counts[group] += 1;
    squares[group] += posterior.means.A.row(row).squaredNorm() + posterior.variances.A.row(row).sum();
  }
  std::vector<std::size_t> used;
  for (std::size_t group = 0; group < counts.size(); ++group)
    if (squares[group] > 0) used.push_back(group);
  const auto has_mean = [&](std::size_t group) { return filter.groups().has_mean(static_cast<Index>(group)); };
  if (used.size() != 2 || !std::all_of(used.begin(), used.end(), has_mean)) return posterior;
  const double ratio = squares[used[1]] / counts[used[1]] / (squares[used[0]] / counts[used[0]]);
  for (std::size_t j = 0; j < groups.size(); ++j) {
    const double factor = std::pow(ratio, static_cast<std::size_t>(groups[j]) == used[0] ? 0.25 : -0.25);
    posterior.means.A.row(static_cast<Index>(j)) *= factor;
    posterior.variances.A.row(static_cast<Index>(j)) *= factor * factor;
  }
  return posterior;
}

template <typename Scalar>
HeldOutFolds<Scalar>::HeldOutFolds(const MultiPassContext<Scalar>& context, const Rows<Scalar>& rows,
                                   const std::vector<double>& scales)
    : context_(context), fold_of_(static_cast<std::size_t>(rows.count())) {
  const ModelShape& shape = context.kalman().shape;
  const bool has_few_rows = rows.count() < min_rows_for_single_fold;
  const bool has_few_parameters = shape.dim * (shape.rank + 2) < min_parameters_for_single_fold;
  const bool has_one_fold = !has_few_rows || !has_few_parameters || context.options.solver == Solver::sampling;
  const int count = has_one_fold ? 1 : cross_validation_folds;
  const double fraction = has_few_rows ? 1.0 / cross_validation_folds : held_out_fraction;
  Random random(context.options.seed, start_stream - 1);
  for (std::uint8_t& fold : fold_of_) fold = static_cast<std::uint8_t>(random.uniform() / fraction);
  if (context.options.has_exact_weights && !assign_folds_by_hash(rows)) return;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint8_t>(i);
    Fold fold{rows.without(fold_of_, index), {}, {}, nullptr, nullptr};
    if (context.rows.is_on_disk()) fold.held_out_copy.move_to_disk(context.rows.folder());
    fold.held_out_copy.append(rows.only(fold_of_, index), shape.left_dim);
    fold.start = context.options.has_exact_weights ? order_invariant_start(fold.rows, context.kalman(), context.pool)
                                                   : learn_one_pass(fold.rows, scales);
    folds_.push_back(std::move(fold));
  }
}

template <typename Scalar>
HeldOutFolds<Scalar>::HeldOutFolds(const MultiPassContext<Scalar>& context, const Rows<Scalar>& rows,
                                   Posterior<double> start, RowCache<Scalar>& validation)
    : context_(context) {
  folds_.push_back({rows, std::move(start), {}, &validation, nullptr});
}

/// Assigns equal rows to the same fold. Returns false if a fold has no rows.
template <typename Scalar>
bool HeldOutFolds<Scalar>::assign_folds_by_hash(const Rows<Scalar>& rows) {
  std::array<Index, cross_validation_folds> counts{};
  for (Index i = 0; i < rows.count(); ++i) {
    const auto fold = static_cast<std::uint8_t>(rounded_hash(rows, i) % cross_validation_folds);
    fold_of_[static_cast<std::size_t>(i)] = fold;
    ++counts[fold];
  }
  return std::count(counts.begin(), counts.end(), 0) == 0;
}

/// Posterior of one pass over the training rows. If the first pass had no moments, it starts from the prior of its
/// filter.
template <typename Scalar>
Posterior<double> HeldOutFolds<Scalar>::learn_one_pass(const Rows<Scalar>& rows, const std::vector<double>& scales) {
  start_row_reads_ += rows.count();
  if (context_.learner.options().moment) {
    StreamOptions options = context_.learner.options();
    options.features_are_standardized = true;
    StreamLearner<Scalar> learner(std::move(options), context_.pool);
    for_each_block(rows, [&](const Rows<Scalar>& block, std::span<Scalar> f) { learner.learn(block, f); });
    if (context_.is_interrupted()) return {};
    learner.finish_buffered_start();
    start_row_reads_ += learner.extra_row_reads();
    return learner.filter().posterior().template cast<double>();
  }
  KalmanFilter<Scalar> filter =
      context_.one_pass().without_data(std::max(context_.one_pass().noise_variance(), min_start_noise_variance));
  for (Index j = 0; j < rows.dim(); ++j)
    if (scales[static_cast<std::size_t>(j)] > 0) filter.add_feature(j, 1);
  for_each_block(rows, [&](const Rows<Scalar>& block, std::span<Scalar> f) { filter.learn(block, f); });
  return balanced_posterior(filter);
}

/// Calls learn(block, predictions) for consecutive blocks of the rows, until an interruption.
template <typename Scalar>
template <typename Learn>
void HeldOutFolds<Scalar>::for_each_block(const Rows<Scalar>& rows, Learn&& learn) const {
  const double entries_per_row = std::max(1.0, context_.rows.entries() / static_cast<double>(context_.rows.count()));
  const Index block_rows =
      std::clamp<Index>(static_cast<Index>(max_fold_block_entries / entries_per_row), 1, max_fold_block_rows);
  std::vector<Scalar> predictions(static_cast<std::size_t>(std::min(block_rows, rows.count())));
  for (Index first = 0; first < rows.count() && !context_.is_interrupted(); first += block_rows) {
    const Index count = std::min(block_rows, rows.count() - first);
    learn(rows.slice(first, count), std::span(predictions).first(static_cast<std::size_t>(count)));
  }
}

template <typename Scalar>
void HeldOutFolds<Scalar>::make_solvers(const MultiPassSolverOptions& options) {
  solver_options_ = options;
  for (Fold& fold : folds_)
    fold.solver = make_multi_pass_solver(fold.rows, solver_options_, std::move(fold.start), context_.pool);
}

template <typename Scalar>
bool HeldOutFolds<Scalar>::advance() {
  // Sweeps have one step per level, which select_level() reports.
  const bool reports_steps = folds_.size() == 1 && context_.options.solver == Solver::newton;
  return std::all_of(folds_.begin(), folds_.end(), [&](Fold& fold) {
    return fold.solver->advance([&] {
      if (reports_steps) context_.report(*fold.solver, false);
    });
  });
}

template <typename Scalar>
double HeldOutFolds<Scalar>::objective() const {
  double sum = 0;
  for (const Fold& fold : folds_) sum += fold.solver->objective();
  return sum / static_cast<double>(folds_.size());
}

template <typename Scalar>
HeldOutLoss HeldOutFolds<Scalar>::evaluate() {
  HeldOutLoss result;
  double observed = 0;
  for (Fold& fold : folds_) {
    const Rows<Scalar> rows = held_out_rows(fold);
    const SignedFactors<Scalar> parameters =
        (fold.solver ? fold.solver->parameters() : fold.start.means).template cast<Scalar>();
    std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
    context_.pool.split(rows.count(), [&](int, IndexRange range) {
      parameters.predict(
          rows.slice(range.first, range.count),
          std::span(predictions).subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count)));
    });
    for (Index i = 0; i < rows.count(); ++i) {
      const auto weight = static_cast<double>(rows.weight(i));
      const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
      const auto f = static_cast<double>(predictions[static_cast<std::size_t>(i)]);
      result.loss += weight * context_.options.loss(y, f);
      result.mean_squared_residual += weight * (y - f) * (y - f);
      result.weight += weight;
      observed += weight * context_.kalman().likelihood->observed(y);
    }
    result.rows += rows.count();
  }
  result.loss /= result.weight;
  result.mean_squared_residual /= result.weight;
  result.constant_loss = context_.kalman().likelihood->constant_score(observed / result.weight, 0);
  return result;
}

template <typename Scalar>
Index HeldOutFolds<Scalar>::row_reads() const {
  Index reads = start_row_reads_;
  for (const Fold& fold : folds_)
    if (fold.solver) reads += fold.solver->passes() * fold.rows.count();
  return reads;
}

template Posterior<double> balanced_posterior(const KalmanFilter<float>&);
template Posterior<double> balanced_posterior(const KalmanFilter<double>&);
template Posterior<double> order_invariant_start(const Rows<float>&, const KalmanOptions&, ThreadPool&);
template Posterior<double> order_invariant_start(const Rows<double>&, const KalmanOptions&, ThreadPool&);
template class HeldOutFolds<float>;
template class HeldOutFolds<double>;

}  // namespace dyad
