#include "training/one_pass/stream_learner.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace dyad {

KalmanOptions kalman_options(const MomentOptions& moment) {
  KalmanOptions kalman;
  kalman.shape = moment.shape;
  kalman.seed = moment.seed;
  return kalman;
}

template <typename Scalar>
StreamLearner<Scalar>::StreamLearner(StreamOptions options, ThreadPool& pool)
    : options_(std::move(options)),
      pool_(pool),
      selection_(pool_),
      scales_(options_.kalman.shape.dim, options_.standardised),
      keeping_(options_.keep, pool_) {
  if (options_.moment) moments_.emplace(*options_.moment, options_.batch, pool_, options_.features_are_independent);
}

template <typename Scalar>
void StreamLearner<Scalar>::start(const Rows<Scalar>& rows) {
  started_ = true;
  add_new_features(rows);
  KalmanOptions& kalman = options_.kalman;
  const DataSummary look = DataSummary::at(rows, scales_.all(), kalman);
  kalman.entries = look.entries;
  least_target_ = look.least_target;
  most_target_ = look.most_target;
  prior_ = look.prior(options_.priors.front(), kalman);

  constexpr double most_bytes = 1e9;  // for all priors together: with very many features fewer of them race
  double last_factors = -1;
  for (const PriorShares& shares : options_.priors) {
    const Prior prior = look.prior(shares, kalman);
    if (!kalman.shape.linear && prior.factors == std::exchange(last_factors, prior.factors)) continue;
    if (!selection_.is_empty() &&
        static_cast<double>(selection_.count() + 1) * selection_.best_filter().bytes() > most_bytes)
      break;
    selection_.enter(KalmanFilter<Scalar>(kalman, prior, look.predictor_variance / 2), Origin::nothing);
  }
  selection_.for_each([&](KalmanFilter<Scalar>& filter) {
    for (Index j = 0; j < kalman.shape.dim; ++j)
      if (const double scale = scales_.all()[static_cast<std::size_t>(j)]; scale > 0) filter.begin(j, scale);
  });
  if (kalman.shape.is_phase_retrieval()) search_.emplace(kalman.shape.dim, kalman.seed);
  // Targets at the ends of a range would be taken for what they seem.
  if (moments_ && !kalman.likelihood->support().is_bounded()) keeping_.begin(kalman, rows.is_sparse());
  next_turn_ = std::max<Index>(1024, 8 * static_cast<Index>(kalman.unknowns_of_row()));
}

template <typename Scalar>
void StreamLearner<Scalar>::add_new_features(const Rows<Scalar>& rows) {
  for (const auto& [j, scale] : scales_.add_new_features(rows))
    selection_.for_each([feature = j, size = scale](KalmanFilter<Scalar>& filter) { filter.begin(feature, size); });
}

/// Losses are those of predictions within reach of the targets so far, and within their range.
template <typename Scalar>
void StreamLearner<Scalar>::update_target_bounds(const Rows<Scalar>& rows) {
  for (const Scalar y : rows.targets()) {
    least_target_ = std::min(least_target_, static_cast<double>(y));
    most_target_ = std::max(most_target_, static_cast<double>(y));
  }
  const double reach = most_target_ - least_target_;
  const Support support = options_.kalman.likelihood->support();
  selection_.set_bounds(std::max(support.low, least_target_ - reach), std::min(support.high, most_target_ + reach));
}

template <typename Scalar>
void StreamLearner<Scalar>::grow(Index dim, Index left_dim) {
  KalmanOptions& kalman = options_.kalman;
  if (dim == kalman.shape.dim && left_dim == kalman.shape.left_dim) return;
  const Index left_before = kalman.shape.left_dim > 0 ? kalman.shape.left_dim : kalman.shape.dim;
  const Index left_after = kalman.shape.left_dim > 0 ? left_dim : dim;
  const Index right_before = kalman.shape.dim - left_before;
  scales_.grow(left_before, left_after - left_before, dim - left_after - right_before);
  kalman.shape.dim = dim;
  kalman.shape.left_dim = left_dim;
  if (moments_) moments_->grow(dim, left_dim);
  if (search_) search_->grow(dim);
  selection_.for_each([&](KalmanFilter<Scalar>& filter) { filter.grow(dim, left_dim); });
  keeping_.stop();  // its rows have another shape
}

template <typename Scalar>
void StreamLearner<Scalar>::set_likelihood(const LikelihoodPointer& likelihood) {
  options_.kalman.likelihood = likelihood;
  selection_.for_each([&](KalmanFilter<Scalar>& filter) { filter.set_likelihood(likelihood); });
}

template <typename Scalar>
void StreamLearner<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  if (rows.count() == 0) return;
  if (!started_) start(rows);
  add_new_features(rows);
  for (Index first = 0; first < rows.count();) {
    Index count = std::clamp<Index>(next_decision_ - rows_, 1, rows.count() - first);
    if (keeping_.is_keeping()) count = std::min(count, keeping_.rows_missing());
    if (fits_exactly()) {
      const Index agreeing =
          predict_agreeing(rows.slice(first, count), predictions.subspan(static_cast<std::size_t>(first)));
      if (agreeing > 0)
        count = agreeing;
      else
        withdraw_exact_start(rows.slice(first, 1));
    }
    const Rows<Scalar> part = rows.slice(first, count);
    const auto own = predictions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    update_target_bounds(part);
    if (!fits_exactly()) selection_.learn(part, own);
    if (search_) follow_search(part);
    if (moments_) follow_moments(part, own);
    if (keeping_.is_keeping()) enter(keeping_.keep(part, prior_, scales_));
    rows_ += count;
    first += count;
    if (rows_ >= next_decision_) decide();
  }
}

template <typename Scalar>
void StreamLearner<Scalar>::follow_search(const Rows<Scalar>& rows) {
  search_->learn(rows);
  if (!search_->is_done()) return;
  selection_.enter(
      KalmanFilter<Scalar>(options_.kalman, prior_, search_->best(), scales_.all(), search_->residual_variance()),
      Origin::search);
  search_.reset();
}

template <typename Scalar>
void StreamLearner<Scalar>::follow_moments(const Rows<Scalar>& rows, std::span<const Scalar> predictions) {
  std::vector<Scalar> residuals(static_cast<std::size_t>(rows.count()));
  moments_->learn(rows, residuals);
  const Support support = options_.kalman.likelihood->support();
  const auto square = [&](Scalar target, Scalar prediction) {
    return std::pow(static_cast<double>(target) - support.clamp(static_cast<double>(prediction)), 2);
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
    if (selection_.count(Origin::moments) >= most) selection_.drop_worst(Origin::moments);
    selection_.enter(KalmanFilter<Scalar>(options_.kalman, prior_, moments_->model(), scales_.all(),
                                          moment_squares_ / compared_rows_ / 2),
                     Origin::moments);
  }
  moment_squares_ = champion_squares_ = compared_rows_ = 0;
}

template <typename Scalar>
void StreamLearner<Scalar>::enter(std::optional<typename BufferedStart<Scalar>::Start> start) {
  if (!start) return;
  if (start->exact) {
    selection_.promote(std::move(start->filter), Origin::cached_rows);
    selection_.drop_challengers();
    exact_rows_ = start->rows;
    solved_rows_ = start->rows;
    return;
  }
  solved_rows_ = start->rows;
  selection_.drop_worst(Origin::cached_rows);
  selection_.enter(std::move(start->filter), Origin::cached_rows);
}

/// Writes the predictions of the exact model and returns the number of rows before the first one that contradicts it.
template <typename Scalar>
Index StreamLearner<Scalar>::predict_agreeing(const Rows<Scalar>& rows, std::span<Scalar> predictions) const {
  // A fit is exact up to 1e-7 (single precision: 3e-5) of the targets' deviation in the mean; one of 10^4 rows may then
  // be off by 100 times as much.
  constexpr double tolerance = std::is_same_v<Scalar, float> ? 3e-3 : 1e-5;
  std::vector<Scalar> variances(static_cast<std::size_t>(rows.count()));
  selection_.best_filter().predict(rows, predictions.first(variances.size()), variances);
  const double usual = std::max(std::abs(least_target_), std::abs(most_target_));
  for (std::size_t i = 0; i < variances.size(); ++i) {
    const auto y = static_cast<double>(rows.targets()[i]);
    const auto f = static_cast<double>(predictions[i]);
    const double size = std::max({usual, std::abs(y), std::abs(f)});
    if (rows.weight(static_cast<Index>(i)) > 0 && !(std::abs(y - f) <= tolerance * size)) return static_cast<Index>(i);
  }
  return rows.count();
}

/// The means stay. The variances become those of least squares over all rows so far, of which the filter has learned
/// the first `exact_rows_`, with the noise that the contradicting row implies: its squared residual over the degrees of
/// freedom, since all other residuals are 0.
template <typename Scalar>
void StreamLearner<Scalar>::withdraw_exact_start(const Rows<Scalar>& contradicting) {
  Scalar prediction = 0;
  Scalar variance = 0;
  selection_.best_filter().predict(contradicting, {&prediction, 1}, {&variance, 1});
  const double residual = static_cast<double>(contradicting.targets().front()) - static_cast<double>(prediction);
  const auto rows = static_cast<double>(rows_);
  const double spare = std::max(1.0, rows + 1 - static_cast<double>(options_.kalman.shape.unknowns()));
  const double repetitions = std::max(1.0, rows / static_cast<double>(exact_rows_));
  selection_.for_champion(
      [&](KalmanFilter<Scalar>& filter) { filter.expect_noise(residual * residual / spare, repetitions); });
  exact_rows_ = 0;
}

template <typename Scalar>
void StreamLearner<Scalar>::stop_keeping() {
  enter(keeping_.finish(prior_, scales_));
}

template <typename Scalar>
void StreamLearner<Scalar>::promote(KalmanFilter<Scalar> filter) {
  scales_.learn_of(filter.scales());
  selection_.promote(std::move(filter), Origin::all_rows);
  selection_.drop_challengers();
  search_.reset();
}

template <typename Scalar>
void StreamLearner<Scalar>::decide() {
  if (!fits_exactly()) {
    selection_.decide();
    if (rows_ >= next_turn_) {
      enter_copy_with_turned_factors();
      next_turn_ *= 2;
    }
  }
  const auto most = static_cast<Index>(std::max(512.0, options_.kalman.unknowns_of_row() / 2));
  next_decision_ = rows_ + std::clamp<Index>(rows_ / 8, 64, most);
}

template <typename Scalar>
void StreamLearner<Scalar>::enter_copy_with_turned_factors() {
  std::optional<KalmanFilter<Scalar>> turned = selection_.best_filter().with_weak_factors_turned();
  if (!turned) return;
  selection_.drop_worst(Origin::turned);
  selection_.enter(std::move(*turned), Origin::turned);
}

template <typename Scalar>
std::string StreamLearner<Scalar>::plan() const {
  std::string text = selection_.count() > 1 ? fmt::format("{} priors race on the first rows", selection_.count())
                                            : std::string("from a small random start");
  if (keeping_.is_keeping())
    text += fmt::format("; the first {} rows are kept and solved by Gauss-Newton", keeping_.rows_to_first_fit());
  if (search_) text += "; a search for the phases";
  if (moments_) text += "; moments of the dense rows offer starts, and watch for what is missed";
  return text;
}

template <typename Scalar>
std::string StreamLearner<Scalar>::origin() const {
  switch (selection_.champion_origin()) {
    case Origin::nothing:
      return "from a small random start";
    case Origin::moments:
      return "from the moments of the rows";
    case Origin::cached_rows:
      return exact_rows_ > 0 ? fmt::format("from {} cached rows, which it fits exactly", exact_rows_)
                             : "from the cached rows";
    case Origin::search:
      return "from the search for the phases";
    case Origin::turned:
      return "with factors whose sign was turned on the way";
    case Origin::all_rows:
      return "from all rows of a file, read again and again";
  }
  return {};
}

template <typename Scalar>
void StreamLearner<Scalar>::archive(Archive& archive) {
  if (!archive.is_loading()) {
    selection_.drop_runaways();
    if (!std::isfinite(moment_squares_) || !std::isfinite(champion_squares_))
      moment_squares_ = champion_squares_ = compared_rows_ = 0;
  }
  archive.number("rows", rows_);
  archive.number("next_decision", next_decision_);
  archive.number("next_turn", next_turn_);
  archive.number("exact_rows", exact_rows_);
  archive.number("entries", options_.kalman.entries);
  archive.number("square_centre", options_.kalman.square_centre);
  archive.number("least_target", least_target_);
  archive.number("most_target", most_target_);
  archive.group("prior", [&] { prior_.archive(archive); });
  archive.group("scales", [&] { scales_.archive(archive); });
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
    if (searching) search_.emplace(options_.kalman.shape.dim, options_.kalman.seed);
  }
  if (search_) archive.group("search", [&] { search_->archive(archive); });
  archive.group("race",
                [&] { selection_.archive(archive, [&] { return KalmanFilter<Scalar>(options_.kalman, prior_, 1); }); });
}

template class StreamLearner<float>;
template class StreamLearner<double>;

}  // namespace dyad
