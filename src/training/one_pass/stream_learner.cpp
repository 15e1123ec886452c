#include "training/one_pass/stream_learner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace dyad {
namespace {

/// Prior of the starts from moments, fits and searches, and of sign-flipped copies, unless the learner has fixed
/// priors.
constexpr PriorShares default_shares{0.5, 0.01};
/// Share of the variance of the targets that is attributed to the noise at first. Sensitivity: docs/constants.md.
constexpr double initial_noise_share = 0.7;
/// A sign-flipped copy of the best filter is added at this number of rows, or at this multiple of the parameters that a
/// row updates if that is larger, and whenever the number of rows has doubled. Sensitivity: docs/constants.md.
constexpr Index min_sign_flip_rows = 1024;
constexpr Index sign_flip_rows_per_parameter = 8;  // sensitivity: docs/constants.md
/// A start from the moment solver is added if its squared residuals are below this multiple of those of the best
/// candidate. They were measured before the last step, which reduces them by a factor of about 2. Sensitivity:
/// docs/constants.md.
constexpr double max_moment_loss_ratio = 2;
/// Share of the residual variance that a start with a missed direction attributes to its parameters: this multiple of
/// the share that the direction explains, because the direction is inexact and others can be missing, but not more
/// than the default share of KalmanFilter. Sensitivity: docs/constants.md.
constexpr double parameter_share_factor = 4;
constexpr double max_parameter_share = 0.5;
/// Maximum number of candidates from moments. Sensitivity: docs/constants.md.
constexpr Index max_moment_candidates = 3;
/// Number of rows between two updates of the selection: the number of rows so far divided by this divisor, within the
/// two limits. The upper limit is raised to half of the number of parameters that a row updates. Sensitivity:
/// docs/constants.md.
constexpr Index selection_interval_divisor = 8;
constexpr Index min_selection_interval_rows = 64;
constexpr double max_selection_interval_rows = 512;  // sensitivity: docs/constants.md
/// Largest relative residual of a row that is consistent with an exact fit. The mean residual of an exact fit is at
/// most 1e-7 (single precision: 3e-5) of the standard deviation of the targets; one of 10^4 rows may exceed it by a
/// factor of 100.
template <typename Scalar>
constexpr double exact_fit_tolerance = std::is_same_v<Scalar, float> ? 3e-3 : 1e-5;

}  // namespace

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
      scales_(options_.kalman.shape.dim, options_.features_are_standardized),
      buffered_start_(options_.buffered_start, pool_) {
  if (!options_.moment) return;
  if (options_.features_are_independent)
    probe_.emplace(*options_.moment, pool_);
  else
    moments_.emplace(*options_.moment, options_.batch, pool_);
}

template <typename Scalar>
void StreamLearner<Scalar>::start(const Rows<Scalar>& rows) {
  has_started_ = true;
  add_new_features(rows);
  KalmanOptions& kalman = options_.kalman;
  const DataSummary summary = DataSummary::of(rows, scales_.all(), kalman);
  kalman.entries_per_row = summary.entries_per_row;
  min_target_ = summary.min_target;
  max_target_ = summary.max_target;
  prior_ = summary.prior(options_.learns_prior ? default_shares : options_.fixed_priors.front(), kalman);
  if (options_.learns_prior) selection_.add(make_hierarchical_filter(summary, rows), Origin::random);
  // Half of the variance of the linear predictor is attributed to the noise, half to the parameters.
  const double initial_noise_variance = summary.predictor_variance / 2;
  // Without a linear term, priors with equal factor variances are equal. A prior equal to the preceding one is skipped.
  double last_factors = -1;
  for (const PriorShares& shares : options_.fixed_priors) {
    if (options_.learns_prior) break;
    const Prior prior = summary.prior(shares, kalman);
    if (!kalman.shape.linear && prior.factors == std::exchange(last_factors, prior.factors)) continue;
    selection_.add(KalmanFilter<Scalar>(kalman, prior, initial_noise_variance), Origin::random);
  }
  selection_.for_each([&](KalmanFilter<Scalar>& filter) {
    for (Index j = 0; j < kalman.shape.dim; ++j)
      if (const double scale = scales_.all()[static_cast<std::size_t>(j)]; scale > 0) filter.add_feature(j, scale);
  });
  if (kalman.shape.is_phase_retrieval()) search_.emplace(kalman.shape.dim, kalman.seed);
  // The buffered fit starts from moments of the targets, which are biased by censored targets.
  if (options_.moment && !kalman.likelihood->support().is_bounded()) buffered_start_.start(kalman, rows.is_sparse());
  constexpr Index never = Index{1} << 52;
  next_sign_flip_ = compares_starts() || !rows.is_sparse()
                        ? std::max<Index>(min_sign_flip_rows,
                                          sign_flip_rows_per_parameter * static_cast<Index>(kalman.unknowns_per_row()))
                        : never;
}

template <typename Scalar>
KalmanFilter<Scalar> StreamLearner<Scalar>::make_hierarchical_filter(const DataSummary& summary,
                                                                     const Rows<Scalar>& rows) {
  Prior prior = summary.hierarchical_prior(options_.kalman);
  for (double* variance : {&prior.weights, &prior.squares, &prior.factors}) *variance *= options_.prior_scale;
  KalmanFilter<Scalar> filter(options_.kalman, prior, indicator_groups(rows),
                              initial_noise_share * summary.predictor_variance);
  for (Index j = 0; j < options_.kalman.shape.dim; ++j) filter.set_group(j, default_group(j));
  return filter;
}

template <typename Scalar>
FilterGroups StreamLearner<Scalar>::indicator_groups(const Rows<Scalar>& rows) const {
  FilterGroups groups = options_.groups;
  if (groups.have_mean.empty()) return groups;
  std::vector<Index> last_row(static_cast<std::size_t>(groups.count), -1);  // last row with a feature of the group
  std::vector<Index> counts(static_cast<std::size_t>(groups.count));        // number of features of the group
  for (Index i = 0; i < rows.count(); ++i)
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const auto group = static_cast<std::size_t>(default_group(j));
      if (x != 1 || last_row[group] == i) groups.have_mean[group] = false;
      last_row[group] = i;
      ++counts[group];
    });
  for (std::size_t group = 0; group < counts.size(); ++group)
    if (groups.have_mean[group] && counts[group] != rows.count()) groups.one_feature_per_row = false;
  return groups;
}

template <typename Scalar>
Index StreamLearner<Scalar>::default_group(Index j) const {
  if (options_.kalman.shape.left_dim > 0) return j >= options_.kalman.shape.left_dim ? 1 : 0;
  return j < static_cast<Index>(options_.feature_groups.size()) ? options_.feature_groups[static_cast<std::size_t>(j)]
                                                                : 0;
}

template <typename Scalar>
void StreamLearner<Scalar>::set_feature_groups(std::span<const std::int32_t> groups) {
  Index j = options_.kalman.shape.dim - static_cast<Index>(groups.size());
  for (const std::int32_t group : groups) {
    selection_.for_each([&](KalmanFilter<Scalar>& filter) {
      if (filter.learns_prior()) filter.set_group(j, group);
    });
    ++j;
  }
}

template <typename Scalar>
void StreamLearner<Scalar>::add_new_features(const Rows<Scalar>& rows) {
  for (const auto& [j, scale] : scales_.add_new_features(rows))
    selection_.for_each(
        [feature = j, size = scale](KalmanFilter<Scalar>& filter) { filter.add_feature(feature, size); });
}

/// Sets the interval to which predictions are clamped: the range of the targets so far, extended by its width on both
/// sides, within the support of the likelihood.
template <typename Scalar>
void StreamLearner<Scalar>::update_target_bounds(const Rows<Scalar>& rows) {
  for (const Scalar y : rows.targets()) {
    min_target_ = std::min(min_target_, static_cast<double>(y));
    max_target_ = std::max(max_target_, static_cast<double>(y));
  }
  const double width = max_target_ - min_target_;
  const Support support = options_.kalman.likelihood->support();
  selection_.set_bounds(std::max(support.low, min_target_ - width), std::min(support.high, max_target_ + width));
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
  if (options_.moment) {
    options_.moment->shape.dim = dim;
    options_.moment->shape.left_dim = left_dim;
    if (probe_) probe_.emplace(*options_.moment, pool_);
  }
  if (search_) search_->grow(dim);
  selection_.for_each([&](KalmanFilter<Scalar>& filter) {
    filter.grow(dim, left_dim);
    if (filter.learns_prior() && left_dim > 0)
      for (Index j = left_before; j < dim; ++j) filter.set_group(j, default_group(j));
  });
  buffered_start_.stop();  // the buffered rows have the previous shape
}

template <typename Scalar>
void StreamLearner<Scalar>::set_likelihood(const LikelihoodPointer& likelihood) {
  options_.kalman.likelihood = likelihood;
  selection_.for_each([&](KalmanFilter<Scalar>& filter) { filter.set_likelihood(likelihood); });
}

template <typename Scalar>
void StreamLearner<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  if (rows.count() == 0) return;
  if (!has_started_) start(rows);
  add_new_features(rows);
  for (Index first = 0; first < rows.count();) {
    Index count = std::clamp<Index>(next_selection_ - rows_, 1, rows.count() - first);
    if (buffered_start_.is_buffering()) count = std::min(count, buffered_start_.rows_until_next_fit());
    if (probe_) count = std::min(count, probe_->rows_until_decision());
    if (fits_exactly()) {
      const Index consistent =
          predict_consistent_rows(rows.slice(first, count), predictions.subspan(static_cast<std::size_t>(first)));
      if (consistent > 0)
        count = consistent;
      else
        withdraw_exact_start(rows.slice(first, 1));
    }
    const Rows<Scalar> block = rows.slice(first, count);
    const auto block_predictions =
        predictions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    update_target_bounds(block);
    if (!fits_exactly()) selection_.learn(block, block_predictions);
    if (search_) update_search(block);
    if (moments_) update_moments(block, block_predictions);
    if (probe_ && !fits_exactly()) update_probe(block, block_predictions);
    if (buffered_start_.is_buffering()) add(buffered_start_.append(block, prior_, scales_));
    rows_ += count;
    first += count;
    if (rows_ >= next_selection_) update_selection();
  }
}

template <typename Scalar>
void StreamLearner<Scalar>::update_search(const Rows<Scalar>& rows) {
  search_->learn(rows);
  if (!search_->is_done()) return;
  selection_.add(
      KalmanFilter<Scalar>(options_.kalman, prior_, search_->best_model(), scales_.all(), search_->residual_variance()),
      Origin::phase_search);
  search_.reset();
}

template <typename Scalar>
void StreamLearner<Scalar>::update_moments(const Rows<Scalar>& rows, std::span<const Scalar> predictions) {
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
    best_squares_ += weight * square(y, predictions[i]);
    compared_weight_ += weight;
  }
  if (moments_->steps_taken() == moment_steps_) return;
  moment_steps_ = moments_->steps_taken();
  if (moment_steps_ > 0 && compared_weight_ > 0 && moment_squares_ < max_moment_loss_ratio * best_squares_) {
    const double residual_variance = moment_squares_ / compared_weight_ / 2;  // after the step, which halves it
    add_moment_start(
        KalmanFilter<Scalar>(options_.kalman, prior_, moments_->model(), scales_.all(), residual_variance));
  }
  moment_squares_ = best_squares_ = compared_weight_ = 0;
}

/// Adds the residuals of the best filter to the probe. At the end of a window with a missed direction, the best filter
/// with this direction becomes a candidate.
template <typename Scalar>
void StreamLearner<Scalar>::update_probe(const Rows<Scalar>& rows, std::span<const Scalar> predictions) {
  std::vector<Scalar> residuals(predictions.size());
  std::transform(rows.targets().begin(), rows.targets().end(), predictions.begin(), residuals.begin(), std::minus<>());
  probe_->add(rows, residuals);
  if (probe_->rows_until_decision() > 0) return;
  const auto direction = probe_->finish_window();
  if (!direction) return;
  const double parameter_share = std::min(max_parameter_share, parameter_share_factor * direction->explained_share);
  add_moment_start(KalmanFilter<Scalar>(options_.kalman, prior_,
                                        add_direction(this->model(), *direction, options_.kalman.shape.positive),
                                        scales_.all(), direction->residual_variance, parameter_share));
}

template <typename Scalar>
void StreamLearner<Scalar>::add_moment_start(KalmanFilter<Scalar> filter) {
  if (selection_.count(Origin::moments) >= max_moment_candidates) selection_.drop_worst(Origin::moments);
  selection_.add(std::move(filter), Origin::moments);
}

template <typename Scalar>
void StreamLearner<Scalar>::add(std::optional<typename BufferedStart<Scalar>::Start> start) {
  if (!start) return;
  if (start->is_exact) {
    selection_.promote(std::move(start->filter), Origin::buffered_rows);
    selection_.drop_all_but_best();
    exact_rows_ = start->rows;
    fitted_rows_ = start->rows;
    return;
  }
  fitted_rows_ = start->rows;
  selection_.drop_worst(Origin::buffered_rows);
  if (start->is_final)
    selection_.promote(std::move(start->filter), Origin::buffered_rows);
  else
    selection_.add(std::move(start->filter), Origin::buffered_rows);
}

/// Writes the predictions of the exact fit. Returns the number of rows before the first one whose residual exceeds
/// `exact_fit_tolerance`.
template <typename Scalar>
Index StreamLearner<Scalar>::predict_consistent_rows(const Rows<Scalar>& rows, std::span<Scalar> predictions) const {
  std::vector<Scalar> variances(static_cast<std::size_t>(rows.count()));
  selection_.best_filter().predict(rows, predictions.first(variances.size()), variances);
  const double target_size = std::max(std::abs(min_target_), std::abs(max_target_));
  for (std::size_t i = 0; i < variances.size(); ++i) {
    const auto y = static_cast<double>(rows.targets()[i]);
    const auto f = static_cast<double>(predictions[i]);
    const double size = std::max({target_size, std::abs(y), std::abs(f)});
    if (rows.weight(static_cast<Index>(i)) > 0 && !(std::abs(y - f) <= exact_fit_tolerance<Scalar> * size))
      return static_cast<Index>(i);
  }
  return rows.count();
}

/// Ends an exact fit. The means are kept. The variances become those of least squares over all rows so far: the fit
/// contains the first `exact_rows_` of them, and the information of all rows is proportional to their number. The noise
/// variance is the squared residual of the inconsistent row divided by the degrees of freedom, because all other
/// residuals are 0.
template <typename Scalar>
void StreamLearner<Scalar>::withdraw_exact_start(const Rows<Scalar>& inconsistent_row) {
  Scalar prediction = 0;
  Scalar variance = 0;
  selection_.best_filter().predict(inconsistent_row, {&prediction, 1}, {&variance, 1});
  const double residual = static_cast<double>(inconsistent_row.targets().front()) - static_cast<double>(prediction);
  const auto rows = static_cast<double>(rows_);
  const double degrees_of_freedom = std::max(1.0, rows + 1 - static_cast<double>(options_.kalman.shape.unknowns()));
  const double repetitions = std::max(1.0, rows / static_cast<double>(exact_rows_));
  selection_.update_best([&](KalmanFilter<Scalar>& filter) {
    filter.set_noise_variance(residual * residual / degrees_of_freedom, repetitions);
  });
  exact_rows_ = 0;
}

template <typename Scalar>
void StreamLearner<Scalar>::finish_buffered_start() {
  add(buffered_start_.finish(prior_, scales_));
}

template <typename Scalar>
void StreamLearner<Scalar>::promote(KalmanFilter<Scalar> filter, Origin origin) {
  scales_.adopt(filter.scales());
  if (filter.options().shape.rank != options_.kalman.shape.rank) {
    options_.kalman.shape.rank = filter.options().shape.rank;
    moments_.reset();  // the models of the moment solver have the previous rank
    options_.moment.reset();
  }
  selection_.promote(std::move(filter), origin);
  selection_.drop_all_but_best();
  search_.reset();
}

template <typename Scalar>
void StreamLearner<Scalar>::update_selection() {
  if (!fits_exactly()) {
    selection_.select();
    if (!probe_ && rows_ >= next_sign_flip_) {
      add_sign_flipped_copy();
      next_sign_flip_ *= 2;
    }
  }
  const auto max_interval =
      static_cast<Index>(std::max(max_selection_interval_rows, options_.kalman.unknowns_per_row() / 2));
  next_selection_ =
      rows_ + std::clamp<Index>(rows_ / selection_interval_divisor, min_selection_interval_rows, max_interval);
}

template <typename Scalar>
void StreamLearner<Scalar>::add_sign_flipped_copy() {
  std::optional<KalmanFilter<Scalar>> flipped = selection_.best_filter().with_weak_factors_sign_flipped();
  if (!flipped) return;
  selection_.drop_worst(Origin::sign_flipped);
  selection_.add(std::move(*flipped), Origin::sign_flipped);
}

template <typename Scalar>
std::string StreamLearner<Scalar>::plan() const {
  std::string text =
      options_.learns_prior ? "hierarchical prior, random start" : fmt::format("{} random starts", selection_.count());
  if (buffered_start_.is_buffering())
    text +=
        fmt::format("; the first {} rows are buffered and fitted by least squares", buffered_start_.rows_of_next_fit());
  if (search_) text += "; phase search";
  if (moments_) text += "; the moment solver adds starts";
  if (probe_) text += "; moments of the residuals add starts";
  return text;
}

template <typename Scalar>
std::string StreamLearner<Scalar>::origin() const {
  switch (selection_.best_origin()) {
    case Origin::random:
      return "the Kalman filter from a random start";
    case Origin::moments:
      return "the Kalman filter from the moments of the rows";
    case Origin::buffered_rows:
      return exact_rows_ > 0 ? fmt::format("least squares on {} cached rows, which it fits exactly", exact_rows_)
                             : "the Kalman filter from least squares on cached rows";
    case Origin::phase_search:
      return "the Kalman filter from a phase search";
    case Origin::sign_flipped:
      return "the Kalman filter with flipped signs of weak factors";
    case Origin::multi_pass:
      return "the Kalman filter after multi-pass training";
    case Origin::shuffled:
      return "the Kalman filter, from rows in random order";
  }
  return {};
}

template <typename Scalar>
void StreamLearner<Scalar>::archive(Archive& archive) {
  if (!archive.is_loading()) {
    selection_.drop_non_finite();
    if (!std::isfinite(moment_squares_) || !std::isfinite(best_squares_))
      moment_squares_ = best_squares_ = compared_weight_ = 0;
  }
  archive.number("rows", rows_);
  archive.number("next_decision", next_selection_);
  archive.number("next_turn", next_sign_flip_);
  archive.number("exact_rows", exact_rows_);
  archive.number("entries", options_.kalman.entries_per_row);
  archive.number("square_centre", options_.kalman.square_center);
  archive.number("least_target", min_target_);
  archive.number("most_target", max_target_);
  archive.group("prior", [&] { prior_.archive(archive); });
  archive.group("scales", [&] { scales_.archive(archive); });
  archive.number("moment_steps", moment_steps_);
  archive.number("moment_squares", moment_squares_);
  archive.number("champion_squares", best_squares_);
  archive.number("compared_rows", compared_weight_);
  if (moments_) archive.group("moments", [&] { moments_->archive(archive); });
  if (probe_) archive.group("probe", [&] { probe_->archive(archive); });
  bool searching = search_.has_value();
  archive.number("searching", searching);
  if (archive.is_loading()) {
    has_started_ = true;
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
