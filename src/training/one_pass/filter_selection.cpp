#include "training/one_pass/filter_selection.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace dyad {
namespace {

/// Minimum number of compared rows for a z-score. Sensitivity: docs/constants.md.
constexpr double min_compared_rows = 50;
/// z-score from which a candidate replaces the best one: two standard errors of the paired difference of losses.
/// Sensitivity: docs/constants.md.
constexpr double promotion_z_score = 2;
/// z-score below which a candidate is removed, if it was compared on more than `min_rows_before_removal` rows.
/// Sensitivity: docs/constants.md.
constexpr double removal_z_score = -4;
constexpr double min_rows_before_removal = 1000;  // sensitivity: docs/constants.md
/// Limit of the number of candidates in a training state. A selection has at most 9 (3 random starts, 3 from moments, 3
/// others), and those of earlier versions at most 15, so that a larger number is damaged data.
constexpr Index max_archived_candidates = 100;

/// Maximum number of candidates after a number of learned rows. It bounds the time per row, which is proportional to
/// the number of candidates.
Index max_candidates_after(double rows) {
  if (rows < 8192) return 12;
  if (rows < 32768) return 5;
  if (rows < 131072) return 3;
  return 2;
}

}  // namespace

template <typename Scalar>
void FilterSelection<Scalar>::LossDifference::add(double difference) {
  rows += 1;
  const double rate = 2 / (rows + 1);  // weights proportional to the index of the row
  mean += (difference - mean) * rate;
  square += (difference * difference - square) * rate;
}

template <typename Scalar>
double FilterSelection<Scalar>::LossDifference::z_score() const {
  if (rows < min_compared_rows) return 0;
  const double variance = std::max(square - mean * mean, std::numeric_limits<double>::min());
  return mean / std::sqrt(variance * 4 / (3 * rows));  // the sum of squared normalized weights is 4 / (3 rows)
}

template <typename Scalar>
void FilterSelection<Scalar>::add(KalmanFilter<Scalar> filter, Origin origin) {
  candidates_.push_back({std::move(filter), origin});
}

template <typename Scalar>
void FilterSelection<Scalar>::promote(KalmanFilter<Scalar> filter, Origin origin) {
  candidates_.push_front({std::move(filter), origin});
  for (Candidate& candidate : candidates_) candidate.advantage = {};
}

template <typename Scalar>
Index FilterSelection<Scalar>::count(Origin origin) const {
  return std::count_if(candidates_.begin(), candidates_.end(), [&](const auto& c) { return c.origin == origin; });
}

template <typename Scalar>
double FilterSelection<Scalar>::loss(const Likelihood& likelihood, Scalar target, Scalar prediction) const {
  const auto f = static_cast<double>(prediction);
  if (!std::isfinite(f)) return std::numeric_limits<float>::max();
  const double bounded = likelihood.has_identity_link() ? std::clamp(f, low_, high_) : f;
  return likelihood.score(likelihood.observed(static_cast<double>(target)), likelihood.mean(bounded));
}

template <typename Scalar>
void FilterSelection<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  std::vector<Candidate*> all;
  for (Candidate& candidate : candidates_) {
    candidate.predictions.resize(static_cast<std::size_t>(rows.count()));
    all.push_back(&candidate);
  }
  const auto learn_one = [&](std::size_t i) { all[i]->filter.learn(rows, all[i]->predictions); };
  if (all.size() == 1)
    learn_one(0);
  else
    pool_.run([&](int worker) {
      for (auto i = static_cast<std::size_t>(worker); i < all.size(); i += static_cast<std::size_t>(pool_.count()))
        learn_one(i);
    });
  rows_ += static_cast<double>(rows.count());
  const std::vector<Scalar>& best = candidates_.front().predictions;
  std::copy(best.begin(), best.end(), predictions.begin());
  if (all.size() == 1) return;
  for (Index i = 0; i < rows.count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto weight = static_cast<double>(rows.weight(i));
    if (!(weight > 0)) continue;
    const Likelihood& likelihood = *best_filter().options().likelihood;
    const double loss_of_best = loss(likelihood, rows.targets()[at], best[at]);
    for (auto c = std::next(candidates_.begin()); c != candidates_.end(); ++c)
      c->advantage.add(weight * (loss_of_best - loss(likelihood, rows.targets()[at], c->predictions[at])));
  }
}

template <typename Scalar>
void FilterSelection<Scalar>::select() {
  for (auto c = std::next(candidates_.begin()); c != candidates_.end();) {
    const bool is_worse = c->advantage.rows > min_rows_before_removal && c->advantage.z_score() < removal_z_score;
    c = is_worse ? candidates_.erase(c) : std::next(c);
  }
  while (count() > max_candidates_after(rows_)) {
    auto worst = std::next(candidates_.begin());
    for (auto c = worst; c != candidates_.end(); ++c)
      if (c->advantage.mean < worst->advantage.mean) worst = c;
    candidates_.erase(worst);
  }
  auto best = candidates_.begin();
  for (auto c = std::next(candidates_.begin()); c != candidates_.end(); ++c)
    if (c->advantage.z_score() > promotion_z_score &&
        (best == candidates_.begin() || c->advantage.mean > best->advantage.mean))
      best = c;
  if (best == candidates_.begin()) return;
  // Advantages over the new best candidate are smaller by its mean advantage over the old one.
  const LossDifference promoted = best->advantage;
  for (Candidate& candidate : candidates_) {
    candidate.advantage.mean -= promoted.mean;
    candidate.advantage.rows = std::min(candidate.advantage.rows, promoted.rows);
  }
  candidates_.front().advantage = {promoted.rows, -promoted.mean, promoted.square};
  candidates_.splice(candidates_.begin(), candidates_, best);
  candidates_.front().advantage = {};
}

template <typename Scalar>
void FilterSelection<Scalar>::drop_worst(Origin origin) {
  auto worst = candidates_.end();
  for (auto c = std::next(candidates_.begin()); c != candidates_.end(); ++c)
    if (c->origin == origin && (worst == candidates_.end() || c->advantage.mean < worst->advantage.mean)) worst = c;
  if (worst != candidates_.end()) candidates_.erase(worst);
}

template <typename Scalar>
void FilterSelection<Scalar>::drop_non_finite() {
  for (auto c = std::next(candidates_.begin()); c != candidates_.end();)
    c = c->filter.is_finite() ? std::next(c) : candidates_.erase(c);
}

template <typename Scalar>
void FilterSelection<Scalar>::for_each(const std::function<void(KalmanFilter<Scalar>&)>& visit) {
  for (Candidate& candidate : candidates_) visit(candidate.filter);
}

template <typename Scalar>
void FilterSelection<Scalar>::archive(Archive& archive, const std::function<KalmanFilter<Scalar>()>& make) {
  archive.number("rows", rows_);
  Index candidates = count();
  archive.number("contenders", candidates);
  if (archive.is_loading()) {
    if (candidates < 1 || candidates > max_archived_candidates)
      throw std::runtime_error("the number of filters is " + std::to_string(candidates) + ", expected 1 to " +
                               std::to_string(max_archived_candidates));
    candidates_.clear();
    for (Index i = 0; i < candidates; ++i) add(make(), Origin::random);
  }
  Index index = 0;
  for (Candidate& candidate : candidates_)
    archive.group(std::to_string(index++), [&] {
      auto origin = static_cast<Index>(candidate.origin);
      archive.number("origin", origin);
      candidate.origin = static_cast<Origin>(std::clamp<Index>(origin, 0, static_cast<Index>(Origin::shuffled)));
      archive.number("lead_rows", candidate.advantage.rows);
      archive.number("lead_mean", candidate.advantage.mean);
      archive.number("lead_square", candidate.advantage.square);
      candidate.filter.archive(archive);
    });
}

template class FilterSelection<float>;
template class FilterSelection<double>;

}  // namespace dyad
