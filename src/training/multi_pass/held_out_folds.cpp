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

constexpr Index few_rows = 5000;
constexpr int folds_of_few_rows = 5;
constexpr Index max_parameters_of_folds = 100'000;  // larger models use one fold
constexpr double held_out_share = 0.1;

/// Hash of the features and the target, rounded so that scaling them back and forth does not change it.
template <typename Scalar>
std::uint64_t rounded_hash(const Rows<Scalar>& rows, Index i) {
  RowHash hash;
  const auto add = [&](std::uint64_t column, Scalar value) {
    constexpr double grid = 1 << 20;
    constexpr double offset = 0.3717;  // keeps usual values away from the edges of the grid
    hash.add(column, std::round(static_cast<double>(value) * grid + offset));
  };
  add(RowHash::target_column, rows.targets()[static_cast<std::size_t>(i)]);
  rows.for_each_entry(i, [&](Index j, Scalar x) { add(static_cast<std::uint64_t>(j), x); });
  return hash.value();
}

}  // namespace

template <typename Scalar>
Posterior<double> moment_posterior(const Rows<Scalar>& rows, const KalmanOptions& kalman, ThreadPool& pool) {
  const NewtonOptions options = newton_options(kalman);
  const MomentStart moments = moment_start(rows, options, pool);
  const Index rank = options.shape.rank;
  return {moments.take(options, options.shape.positive ? rank : moments.positive_count(rank)), {}};
}

template <typename Scalar>
HeldOutFolds<Scalar>::HeldOutFolds(const RefineContext<Scalar>& context, const Rows<Scalar>& rows,
                                   const std::vector<double>& scales)
    : context_(context), fold_of_(static_cast<std::size_t>(rows.count())) {
  const ModelShape& shape = context.kalman().shape;
  const bool is_few = rows.count() < few_rows;
  const int count = is_few && shape.dim * (shape.rank + 2) < max_parameters_of_folds ? folds_of_few_rows : 1;
  const double share = is_few ? 1.0 / folds_of_few_rows : held_out_share;
  Random random(context.options.seed, start_stream - 1);
  for (std::uint8_t& fold : fold_of_) fold = static_cast<std::uint8_t>(random.uniform() / share);
  if (context.options.exact_weights && !assign_folds_by_hash(rows)) return;
  for (int i = 0; i < count; ++i) {
    const auto own = static_cast<std::uint8_t>(i);
    Fold fold{rows.without(fold_of_, own), {}, {}, nullptr, nullptr};
    if (context.rows.is_on_disk()) fold.own_held_out.move_to_disk(context.rows.folder());
    fold.own_held_out.append(rows.only(fold_of_, own), shape.left_dim);
    fold.start = context.options.exact_weights ? moment_posterior(fold.rows, context.kalman(), context.pool)
                                               : posterior_of_pass(fold.rows, scales);
    folds_.push_back(std::move(fold));
  }
}

template <typename Scalar>
HeldOutFolds<Scalar>::HeldOutFolds(const RefineContext<Scalar>& context, const Rows<Scalar>& rows,
                                   Posterior<double> start, RowCache<Scalar>& validation)
    : context_(context) {
  folds_.push_back({rows, std::move(start), {}, &validation, nullptr});
}

/// Equal rows are in the same fold. False if a fold has no rows.
template <typename Scalar>
bool HeldOutFolds<Scalar>::assign_folds_by_hash(const Rows<Scalar>& rows) {
  std::array<Index, folds_of_few_rows> counts{};
  for (Index i = 0; i < rows.count(); ++i) {
    const auto fold = static_cast<std::uint8_t>(rounded_hash(rows, i) % folds_of_few_rows);
    fold_of_[static_cast<std::size_t>(i)] = fold;
    ++counts[fold];
  }
  return std::count(counts.begin(), counts.end(), 0) == 0;
}

/// One pass over the rows. Filters that differed in their priors only are not compared again: the best prior is used.
template <typename Scalar>
Posterior<double> HeldOutFolds<Scalar>::posterior_of_pass(const Rows<Scalar>& rows, const std::vector<double>& scales) {
  row_reads_of_starts_ += rows.count();
  if (context_.learner.options().moment) {
    StreamOptions options = context_.learner.options();
    options.standardised = true;
    StreamLearner<Scalar> again(std::move(options), context_.pool);
    for_each_block(rows, [&](const Rows<Scalar>& block, std::span<Scalar> f) { again.learn(block, f); });
    if (context_.is_interrupted()) return {};
    again.stop_keeping();
    row_reads_of_starts_ += again.extra_row_reads();
    return again.filter().posterior().template cast<double>();
  }
  constexpr double min_noise = 1e-12;
  KalmanFilter<Scalar> filter(context_.kalman(), context_.one_pass().first_prior(),
                              std::max(context_.one_pass().noise_variance(), min_noise));
  for (Index j = 0; j < rows.dim(); ++j)
    if (scales[static_cast<std::size_t>(j)] > 0) filter.begin(j, 1);
  for_each_block(rows, [&](const Rows<Scalar>& block, std::span<Scalar> f) { filter.learn(block, f); });
  return filter.posterior().template cast<double>();
}

/// Calls learn(block, predictions) with blocks of the size of a stream's, until an interruption.
template <typename Scalar>
template <typename Learn>
void HeldOutFolds<Scalar>::for_each_block(const Rows<Scalar>& rows, Learn&& learn) const {
  constexpr double entries_of_block = 1 << 20;  // 0.2 s for nine filters of rank 8
  const double entries_of_row = std::max(1.0, context_.rows.entries() / static_cast<double>(context_.rows.count()));
  const Index most = std::clamp<Index>(static_cast<Index>(entries_of_block / entries_of_row), 1, 8192);
  std::vector<Scalar> predictions(static_cast<std::size_t>(std::min(most, rows.count())));
  for (Index first = 0; first < rows.count() && !context_.is_interrupted(); first += most) {
    const Index count = std::min(most, rows.count() - first);
    learn(rows.slice(first, count), std::span(predictions).first(static_cast<std::size_t>(count)));
  }
}

template <typename Scalar>
void HeldOutFolds<Scalar>::make_solvers(const MultiPassSolverOptions& options) {
  solver_options_ = options;
  for (Fold& fold : folds_)
    fold.pass_solver = make_multi_pass_solver(fold.rows, solver_options_, std::move(fold.start), context_.pool);
}

template <typename Scalar>
bool HeldOutFolds<Scalar>::advance() {
  const bool reports_steps = folds_.size() == 1 && context_.options.solver == Solver::newton;
  return std::all_of(folds_.begin(), folds_.end(), [&](Fold& fold) {
    return fold.pass_solver->advance([&] {
      if (reports_steps) context_.report(*fold.pass_solver, false);
    });
  });
}

template <typename Scalar>
double HeldOutFolds<Scalar>::objective() const {
  double sum = 0;
  for (const Fold& fold : folds_) sum += fold.pass_solver->objective();
  return sum / static_cast<double>(folds_.size());
}

template <typename Scalar>
HeldOutLoss HeldOutFolds<Scalar>::evaluate() {
  HeldOutLoss result;
  double observed = 0;
  for (Fold& fold : folds_) {
    const Rows<Scalar> rows = context_.view(fold.held_out != nullptr ? *fold.held_out : fold.own_held_out);
    const SignedFactors<Scalar> parameters =
        (fold.pass_solver ? fold.pass_solver->parameters() : fold.start.means).template cast<Scalar>();
    std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
    context_.pool.split(rows.count(), [&](int, Share share) {
      parameters.predict(
          rows.slice(share.first, share.count),
          std::span(predictions).subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.count)));
    });
    for (Index i = 0; i < rows.count(); ++i) {
      const auto weight = static_cast<double>(rows.weight(i));
      const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
      const auto f = static_cast<double>(predictions[static_cast<std::size_t>(i)]);
      result.loss += weight * context_.options.loss(y, f);
      result.squares += weight * (y - f) * (y - f);
      result.weight += weight;
      observed += weight * context_.kalman().likelihood->observed(y);
    }
    result.rows += rows.count();
  }
  result.loss /= result.weight;
  result.squares /= result.weight;
  result.constant_loss = context_.kalman().likelihood->constant_score(observed / result.weight, 0);
  return result;
}

template <typename Scalar>
Index HeldOutFolds<Scalar>::row_reads() const {
  Index reads = row_reads_of_starts_;
  for (const Fold& fold : folds_)
    if (fold.pass_solver) reads += fold.pass_solver->passes() * fold.rows.count();
  return reads;
}

template Posterior<double> moment_posterior(const Rows<float>&, const KalmanOptions&, ThreadPool&);
template Posterior<double> moment_posterior(const Rows<double>&, const KalmanOptions&, ThreadPool&);
template class HeldOutFolds<float>;
template class HeldOutFolds<double>;

}  // namespace dyad
