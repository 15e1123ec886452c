#include "fit/stream_learner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

namespace dyad {
namespace {

/// Sizes of the kept block at which it is solved, in numbers of unknowns. Without noise the first ones are enough.
constexpr std::array attempts{1.5, 2.0, 3.0, 4.5};
constexpr double enough_with_noise = 3;

/// Bytes that all priors together may take: with very many features fewer of them race.
constexpr double most_for_priors = 1e9;

/// Mean, variance and ends of numbers, of which wild ones count as ten times as far out as is usual.
struct Usual {
  double mean = 0;
  double variance = 0;
  double least = 0;
  double most = 0;
};

Usual usual(std::vector<double> numbers) {
  if (numbers.empty()) return {};
  const auto median = [](std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  const double centre = median(numbers);
  std::vector<double> distances(numbers.size());
  std::transform(numbers.begin(), numbers.end(), distances.begin(), [&](double x) { return std::abs(x - centre); });
  double reach = 10 * median(distances);
  if (!(reach > 0)) reach = std::numeric_limits<double>::max();  // most are the same: what is wild cannot be told
  const auto count = static_cast<double>(numbers.size());
  Usual result{0, 0, std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
  for (double& x : numbers) {
    x = std::clamp(x, centre - reach, centre + reach);
    result.mean += x / count;
    result.least = std::min(result.least, x);
    result.most = std::max(result.most, x);
  }
  for (const double x : numbers) result.variance += (x - result.mean) * (x - result.mean) / count;
  return result;
}

/// A robust size of the values that a feature has where it is not zero.
double scale_of(std::vector<double>& sizes) {
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  const double most = 10 * *middle;
  double squares = 0;
  for (const double size : sizes) squares += std::pow(std::min(size, most), 2);
  return std::sqrt(squares / static_cast<double>(sizes.size()));
}

/// Whether fourth powers of a scale, and of its inverse, are numbers. A feature beyond is left out.
template <typename Scalar>
bool is_possible(double scale) {
  const double most = std::pow(static_cast<double>(std::numeric_limits<Scalar>::max()), 0.22);
  return scale > 1 / most && scale < most;
}

}  // namespace

Index count_unknowns(Index dim, Index left_dim, Index rank, bool linear, Diagonal diagonal, bool intercept) {
  const Index of_M = left_dim > 0 ? rank * (dim - rank) : rank * dim - rank * (rank - 1) / 2;
  return of_M + (linear ? dim : 0) + (diagonal == Diagonal::free ? dim : 0) + (intercept ? 1 : 0);
}

KalmanOptions kalman_options(const MomentOptions& shape) {
  KalmanOptions kalman;
  kalman.dim = shape.dim;
  kalman.left_dim = shape.left_dim;
  kalman.rank = shape.rank;
  kalman.linear = shape.linear;
  kalman.intercept = shape.intercept;
  kalman.positive = shape.positive;
  kalman.amplitude = shape.positive && shape.rank == 1 && !shape.linear && !shape.intercept;
  kalman.diagonal = shape.diagonal;
  kalman.seed = shape.seed;
  return kalman;
}

NewtonOptions newton_options(const KalmanOptions& shape) {
  NewtonOptions newton;
  newton.left_dim = shape.left_dim;
  newton.rank = shape.rank;
  newton.linear = shape.linear;
  newton.intercept = shape.intercept;
  newton.positive = shape.positive;
  newton.diagonal = shape.diagonal;
  newton.seed = shape.seed;
  return newton;
}

template <typename Scalar>
StreamLearner<Scalar>::StreamLearner(StreamOptions options)
    : options_(std::move(options)),
      workers_(options_.threads),
      race_(workers_),
      scales_(static_cast<std::size_t>(options_.kalman.dim), options_.standardised ? 1.0 : 0.0) {
  if (options_.moment) moments_.emplace(*options_.moment, options_.batch, options_.features_are_independent);
}

template <typename Scalar>
Index StreamLearner<Scalar>::unknowns() const {
  const KalmanOptions& kalman = options_.kalman;
  return count_unknowns(kalman.dim, kalman.left_dim, kalman.rank, kalman.linear, kalman.diagonal, kalman.intercept);
}

template <typename Scalar>
Index StreamLearner<Scalar>::rows_to_keep(double attempt) const {
  return static_cast<Index>(std::ceil(attempt * static_cast<double>(unknowns())));
}

template <typename Scalar>
void StreamLearner<Scalar>::start(const Rows<Scalar>& rows) {
  if (!options_.standardised) meet(rows);
  started_ = true;
  sparse_ = rows.is_sparse();
  KalmanOptions& kalman = options_.kalman;
  std::vector<double> entries;
  std::vector<double> left;
  std::vector<double> right;
  std::vector<double> targets;
  for (Index i = 0; i < rows.count(); ++i) {
    if (!(rows.weight(i) > 0)) continue;
    double of_row[3] = {0, 0, 0};
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const double scale = scales_[static_cast<std::size_t>(j)];
      if (!(scale > 0)) return;
      of_row[0] += 1;
      of_row[kalman.left_dim > 0 && j >= kalman.left_dim ? 2 : 1] += std::pow(static_cast<double>(x) / scale, 2);
    });
    entries.push_back(of_row[0]);
    left.push_back(of_row[1]);
    right.push_back(of_row[2]);
    targets.push_back(static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]));
  }
  kalman.entries = std::max(1.0, usual(entries).mean);
  const Usual target = usual(targets);
  const double mean = target.mean;
  least_target_ = target.least;
  most_target_ = target.most;
  target_variance_ = kalman.task == Task::regression && target.variance > 0 ? target.variance : 1;

  // Rows that are still empty will have an entry or so.
  const auto length_of = [](const std::vector<double>& lengths) {
    const double length = usual(lengths).mean;
    return length > 0 ? length : 1;
  };
  const double length = kalman.left_dim > 0 ? length_of(left) + length_of(right) : length_of(left);
  const double pair = kalman.left_dim > 0 ? std::sqrt(length_of(left) * length_of(right)) : std::sqrt(2.0) * length;
  const auto prior = [&](const PriorShares& shares) {
    // Without weights all of the variance is the interactions' to explain.
    const double of_weights = shares.weights * target_variance_ / length;
    const double share = kalman.linear ? shares.factors : std::max(1.0, shares.weights);
    const double of_factors = std::sqrt(share * target_variance_ / static_cast<double>(kalman.rank)) / pair;
    return Prior{target_variance_ + mean * mean, of_weights, of_weights, of_factors};
  };
  prior_ = prior(options_.priors.front());
  double last_factors = -1;
  for (const PriorShares& shares : options_.priors) {
    const Prior next = prior(shares);
    if (!kalman.linear && next.factors == last_factors) continue;
    if (!race_.is_empty() && static_cast<double>(race_.count() + 1) * race_.champion().bytes() > most_for_priors) break;
    last_factors = next.factors;
    race_.enter(KalmanFilter<Scalar>(kalman, next, target_variance_ / 2), Origin::nothing);
  }
  if (kalman.amplitude) search_.emplace(kalman.dim, kalman.seed);
  race_.for_each([&](KalmanFilter<Scalar>& filter) {
    for (Index j = 0; j < kalman.dim; ++j)
      if (scales_[static_cast<std::size_t>(j)] > 0) filter.begin(j, scales_[static_cast<std::size_t>(j)]);
  });

  // What sign restarts would solve with hardly any rows more than unknowns, one start alone often will not.
  while (!options_.sign_restarts && attempts[attempt_] < enough_with_noise) ++attempt_;
  // Targets at the ends of a range would be taken for what they seem.
  const bool has_range = std::isfinite(kalman.low) || std::isfinite(kalman.high);
  if (moments_ && !has_range && can_keep(attempts[attempt_])) kept_ = std::make_unique<KeptRows<Scalar>>();
  next_turn_ = std::max<Index>(1024, 8 * static_cast<Index>(kalman.unknowns_of_row()));
}

/// Features that show themselves for the first time are given the scale of what they show.
template <typename Scalar>
void StreamLearner<Scalar>::meet(const Rows<Scalar>& rows) {
  std::map<Index, std::vector<double>> sizes;
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (scales_[static_cast<std::size_t>(j)] > 0 || x == 0 || !(rows.weight(i) > 0)) return;
      sizes[j].push_back(std::abs(static_cast<double>(x)));
    });
  // A single value may be next to nothing, and a scale that is far too small does harm: few values count together with
  // what is typical.
  constexpr std::size_t enough = 20;
  constexpr double doubt = 4;
  std::map<Index, double> found_scales;
  std::vector<double> sure;
  for (auto& [j, found] : sizes) {
    found_scales[j] = scale_of(found);
    if (found.size() >= enough) sure.push_back(found_scales[j]);
  }
  if (sure.empty() && !(typical_scale_ > 0))
    for (const auto& [j, scale] : found_scales) sure.push_back(scale);
  if (!sure.empty()) {
    const auto middle = sure.begin() + static_cast<std::ptrdiff_t>(sure.size() / 2);
    std::nth_element(sure.begin(), middle, sure.end());
    typical_scale_ = *middle;
  }
  for (const auto& [j, found] : sizes) {
    const auto count = static_cast<double>(found.size());
    double scale = found_scales[j];
    if (found.size() < enough)
      scale = std::sqrt((count * scale * scale + doubt * typical_scale_ * typical_scale_) / (count + doubt));
    if (!is_possible<Scalar>(scale)) continue;
    scales_[static_cast<std::size_t>(j)] = scale;
    race_.for_each([feature = j, scale](KalmanFilter<Scalar>& filter) { filter.begin(feature, scale); });
  }
}

template <typename Scalar>
void StreamLearner<Scalar>::grow(Index dim, Index left_dim) {
  KalmanOptions& kalman = options_.kalman;
  if (dim == kalman.dim && left_dim == kalman.left_dim) return;
  const Index left_before = kalman.left_dim > 0 ? kalman.left_dim : kalman.dim;
  const Index left_after = kalman.left_dim > 0 ? left_dim : dim;
  const Index right_before = kalman.dim - left_before;
  const double scale = options_.standardised ? 1 : 0;
  scales_.insert(scales_.end(), static_cast<std::size_t>(dim - left_after - right_before), scale);
  scales_.insert(scales_.begin() + left_before, static_cast<std::size_t>(left_after - left_before), scale);
  kalman.dim = dim;
  kalman.left_dim = left_dim;
  if (moments_) moments_->grow(dim, left_dim);
  if (search_) search_->grow(dim);
  race_.for_each([&](KalmanFilter<Scalar>& filter) {
    filter.grow(dim, left_dim);
    if (!options_.standardised) return;
    for (Index j = left_before; j < left_after; ++j) filter.begin(j, 1);
    for (Index j = left_after + right_before; j < dim; ++j) filter.begin(j, 1);
  });
  kept_.reset();  // its rows have another shape
}

template <typename Scalar>
void StreamLearner<Scalar>::set_range(double low, double high) {
  options_.kalman.low = low;
  options_.kalman.high = high;
  race_.for_each([&](KalmanFilter<Scalar>& filter) { filter.set_range(low, high); });
}

template <typename Scalar>
Index StreamLearner<Scalar>::rows_until_decision() const {
  return std::max<Index>(1, next_decision_ - rows_);
}

template <typename Scalar>
void StreamLearner<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  if (rows.count() == 0) return;
  if (!started_) start(rows);
  if (!options_.standardised) meet(rows);
  for (Index first = 0; first < rows.count();) {
    Index count = std::min(rows.count() - first, rows_until_decision());
    if (kept_) count = std::min(count, std::max<Index>(1, rows_to_keep(attempts[attempt_]) - kept_->count()));
    const Rows<Scalar> part = rows.slice(first, count);
    const auto own = predictions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    for (const Scalar y : part.targets()) {
      least_target_ = std::min(least_target_, static_cast<double>(y));
      most_target_ = std::max(most_target_, static_cast<double>(y));
    }
    set_bounds();
    race_.learn(part, own);
    if (search_) {
      search_->learn(part);
      if (search_->is_done()) {
        race_.enter(
            KalmanFilter<Scalar>(options_.kalman, prior_, search_->best(), scales_, search_->residual_variance()),
            Origin::search);
        search_.reset();
      }
    }
    if (moments_) follow_moments(part, own);
    if (kept_) keep(part);
    rows_ += count;
    first += count;
    if (rows_ >= next_decision_) decide();
  }
}

template <typename Scalar>
void StreamLearner<Scalar>::follow_moments(const Rows<Scalar>& rows, std::span<const Scalar> predictions) {
  std::vector<Scalar> residuals(static_cast<std::size_t>(rows.count()));
  moments_->learn(rows, residuals);
  const auto square = [&](Scalar target, Scalar prediction) {
    const double within = std::clamp(static_cast<double>(prediction), options_.kalman.low, options_.kalman.high);
    return std::pow(static_cast<double>(target) - within, 2);
  };
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const auto weight = static_cast<double>(rows.weight(static_cast<Index>(i)));
    const Scalar y = rows.targets()[i];
    moment_squares_ += weight * square(y, y - residuals[i]);
    champion_squares_ += weight * square(y, predictions[i]);
    compared_rows_ += weight;
  }
  if (moments_->steps_taken() == moment_steps_) return;
  moment_steps_ = moments_->steps_taken();
  // The step has made them better than these squares say, by half or so.
  constexpr double worth_a_try = 2;
  constexpr Index most = 3;
  if (moment_steps_ > 0 && compared_rows_ > 0 && moment_squares_ < worth_a_try * champion_squares_) {
    if (race_.count(Origin::moments) >= most) race_.drop_worst(Origin::moments);
    race_.enter(
        KalmanFilter<Scalar>(options_.kalman, prior_, moments_->model(), scales_, moment_squares_ / compared_rows_ / 2),
        Origin::moments);
  }
  moment_squares_ = champion_squares_ = compared_rows_ = 0;
}

template <typename Scalar>
void StreamLearner<Scalar>::keep(const Rows<Scalar>& rows) {
  kept_->append(rows);
  if (kept_->count() >= rows_to_keep(attempts[attempt_])) solve_kept_rows();
}

template <typename Scalar>
void StreamLearner<Scalar>::solve_kept_rows() {
  const KalmanOptions& kalman = options_.kalman;
  NewtonOptions newton = newton_options(kalman);
  newton.interrupted = options_.interrupted;
  const double work_of_product =
      static_cast<double>(kept_->count()) * kalman.entries * static_cast<double>(kalman.rank + 1);
  const double products = (options_.most_work - work_) / work_of_product;
  if (products < static_cast<double>(newton.most_products)) newton.most_products = static_cast<Index>(products);
  if (!options_.standardised) kept_->scale(inverse_scales());
  const Rows<Scalar> rows = kept_->view(kalman.dim);
  newton.restarts = options_.sign_restarts;
  NewtonFit<Scalar> fit = gauss_newton(rows, newton, workers_, last_fit_ ? &*last_fit_ : nullptr);
  last_fit_ = fit.parameters;
  if (!options_.standardised) {
    kept_->scale(scales_);
    fit.parameters.scale_features(inverse_scales());
  }
  extra_row_reads_ += fit.products * rows.count();
  work_ += static_cast<double>(fit.products) * work_of_product;
  const auto spare = static_cast<double>(rows.count() - unknowns());
  const double noise = std::max(fit.residual_squares * static_cast<double>(rows.count()) / std::max(1.0, spare), 1e-30);
  const bool worth_it = static_cast<double>(rows.count()) >= enough_with_noise * static_cast<double>(unknowns());
  if (fit.finite && (fit.exact || worth_it)) {
    KalmanFilter<Scalar> filter(kalman, prior_, fit.parameters, scales_, noise, rows);
    if (fit.exact) {
      race_.crown(std::move(filter), Origin::kept_rows);
      exact_rows_ = rows.count();
    } else {
      race_.drop_worst(Origin::kept_rows);
      race_.enter(std::move(filter), Origin::kept_rows);
    }
  }
  ++attempt_;
  if (fit.exact || attempt_ == attempts.size() || !can_keep(attempts[attempt_])) {
    kept_.reset();
    last_fit_.reset();
  }
}

template <typename Scalar>
std::vector<double> StreamLearner<Scalar>::inverse_scales() const {
  std::vector<double> inverse(scales_);
  for (double& scale : inverse) scale = scale > 0 ? 1 / scale : 0;
  return inverse;
}

/// Whether memory and patience allow it: a fit takes some hundred looks at the rows.
template <typename Scalar>
bool StreamLearner<Scalar>::can_keep(double attempt) const {
  constexpr double looks = 300;
  const auto wanted = static_cast<double>(rows_to_keep(attempt));
  return KeptRows<Scalar>::bytes_for(wanted, options_.kalman.entries, sparse_) <= options_.memory &&
         looks * wanted * options_.kalman.entries * static_cast<double>(options_.kalman.rank + 1) <=
             options_.most_work - work_;
}

template <typename Scalar>
void StreamLearner<Scalar>::stop_keeping() {
  const bool is_first = !last_fit_.has_value();
  if (kept_ && is_first && kept_->count() >= rows_to_keep(attempts.front())) solve_kept_rows();
  kept_.reset();
  last_fit_.reset();
}

/// Losses are those of predictions within reach of the targets so far, and within their range.
template <typename Scalar>
void StreamLearner<Scalar>::set_bounds() {
  const double reach = most_target_ - least_target_;
  race_.set_bounds(std::max(options_.kalman.low, least_target_ - reach),
                   std::min(options_.kalman.high, most_target_ + reach));
}

template <typename Scalar>
void StreamLearner<Scalar>::decide() {
  race_.decide();
  if (rows_ >= next_turn_) {
    enter_copy_with_turned_factors();
    next_turn_ *= 2;
  }
  const auto most = static_cast<Index>(std::max(512.0, options_.kalman.unknowns_of_row() / 2));
  next_decision_ = rows_ + std::clamp<Index>(rows_ / 8, 64, most);
}

template <typename Scalar>
void StreamLearner<Scalar>::enter_copy_with_turned_factors() {
  std::optional<KalmanFilter<Scalar>> turned = race_.champion().with_weak_factors_turned();
  if (!turned) return;
  race_.drop_worst(Origin::turned);
  race_.enter(std::move(*turned), Origin::turned);
}

template <typename Scalar>
std::string StreamLearner<Scalar>::plan() const {
  std::string text = race_.count() > 1 ? fmt::format("{} priors race on the first rows", race_.count())
                                       : std::string("from a small random start");
  if (kept_)
    text += fmt::format("; the first {} rows are kept and solved by Gauss-Newton", rows_to_keep(attempts.front()));
  if (search_) text += "; a search for the phases";
  if (moments_) text += "; moments of the dense rows offer starts, and watch for what is missed";
  return text;
}

template <typename Scalar>
std::string StreamLearner<Scalar>::story() const {
  switch (race_.champion_origin()) {
    case Origin::nothing:
      return "from a small random start";
    case Origin::moments:
      return "from the moments of the rows";
    case Origin::kept_rows:
      return exact_rows_ ? fmt::format("from {} kept rows, which it fits exactly", *exact_rows_) : "from the kept rows";
    case Origin::search:
      return "from the search for the phases";
    case Origin::turned:
      return "with factors whose sign was turned on the way";
  }
  return {};
}

template <typename Scalar>
void StreamLearner<Scalar>::archive(Archive& archive) {
  race_.drop_runaways();
  archive.number("rows", rows_);
  archive.number("square_centre", options_.kalman.square_centre);
  Index exact_rows = exact_rows_.value_or(0);
  archive.number("exact_rows", exact_rows);
  if (exact_rows > 0) exact_rows_ = exact_rows;
  archive.number("next_decision", next_decision_);
  archive.number("next_turn", next_turn_);
  archive.number("sparse", sparse_);
  archive.number("entries", options_.kalman.entries);
  archive.number("target_variance", target_variance_);
  archive.number("least_target", least_target_);
  archive.number("most_target", most_target_);
  archive.number("prior_intercept", prior_.intercept);
  archive.number("prior_weights", prior_.weights);
  archive.number("prior_squares", prior_.squares);
  archive.number("prior_factors", prior_.factors);
  archive.vector("scales", scales_, options_.kalman.dim);
  archive.number("typical_scale", typical_scale_);
  archive.number("moment_steps", moment_steps_);
  archive.number("moment_squares", moment_squares_);
  archive.number("champion_squares", champion_squares_);
  archive.number("compared_rows", compared_rows_);
  if (moments_) archive.group("moments", [&] { moments_->archive(archive); });
  bool searching = search_.has_value();
  archive.number("searching", searching);
  if (archive.is_loading()) {
    started_ = true;
    search_.reset();
    if (searching) search_.emplace(options_.kalman.dim, options_.kalman.seed);
  }
  if (search_) archive.group("search", [&] { search_->archive(archive); });
  archive.group("race", [&] {
    race_.archive(archive, [&] { return KalmanFilter<Scalar>(options_.kalman, prior_, target_variance_); });
  });
}

template class StreamLearner<float>;
template class StreamLearner<double>;

}  // namespace dyad
