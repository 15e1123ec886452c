#include "training/one_pass/filter_selection.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace dyad {

template <typename Scalar>
void FilterSelection<Scalar>::Lead::add(double difference) {
  rows += 1;
  const double rate = 2 / (rows + 1);  // weights rise along the rows
  mean += (difference - mean) * rate;
  square += (difference * difference - square) * rate;
}

template <typename Scalar>
double FilterSelection<Scalar>::Lead::significance() const {
  constexpr double fewest = 50;
  if (rows < fewest) return 0;
  const double variance = std::max(square - mean * mean, std::numeric_limits<double>::min());
  return mean / std::sqrt(variance * 4 / (3 * rows));  // the sum of squared weights is 4 / (3 rows)
}

template <typename Scalar>
void FilterSelection<Scalar>::enter(KalmanFilter<Scalar> filter, Origin origin) {
  candidates_.push_back({std::move(filter), origin});
}

template <typename Scalar>
void FilterSelection<Scalar>::promote(KalmanFilter<Scalar> filter, Origin origin) {
  candidates_.push_front({std::move(filter), origin});
  for (Candidate& candidate : candidates_) candidate.lead = {};
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
      c->lead.add(weight * (loss_of_best - loss(likelihood, rows.targets()[at], c->predictions[at])));
  }
}

template <typename Scalar>
Index FilterSelection<Scalar>::max_candidates() const {
  if (rows_ < 8192) return 12;
  if (rows_ < 32768) return 5;
  if (rows_ < 131072) return 3;
  return 2;
}

template <typename Scalar>
void FilterSelection<Scalar>::decide() {
  constexpr double better = 2;
  constexpr double behind = -4;
  constexpr double given_time = 1000;  // rows
  for (auto c = std::next(candidates_.begin()); c != candidates_.end();) {
    const bool lost = c->lead.rows > given_time && c->lead.significance() < behind;
    c = lost ? candidates_.erase(c) : std::next(c);
  }
  while (count() > max_candidates()) {
    auto worst = std::next(candidates_.begin());
    for (auto c = worst; c != candidates_.end(); ++c)
      if (c->lead.mean < worst->lead.mean) worst = c;
    candidates_.erase(worst);
  }
  auto best = candidates_.begin();
  for (auto c = std::next(candidates_.begin()); c != candidates_.end(); ++c)
    if (c->lead.significance() > better && (best == candidates_.begin() || c->lead.mean > best->lead.mean)) best = c;
  if (best == candidates_.begin()) return;
  // Compared with the new best candidate, everybody is further behind by what it was ahead of the old one.
  const Lead won = best->lead;
  for (Candidate& candidate : candidates_) {
    candidate.lead.mean -= won.mean;
    candidate.lead.rows = std::min(candidate.lead.rows, won.rows);
  }
  candidates_.front().lead = {won.rows, -won.mean, won.square};
  candidates_.splice(candidates_.begin(), candidates_, best);
  candidates_.front().lead = {};
}

template <typename Scalar>
void FilterSelection<Scalar>::drop_worst(Origin origin) {
  auto worst = candidates_.end();
  for (auto c = std::next(candidates_.begin()); c != candidates_.end(); ++c)
    if (c->origin == origin && (worst == candidates_.end() || c->lead.mean < worst->lead.mean)) worst = c;
  if (worst != candidates_.end()) candidates_.erase(worst);
}

template <typename Scalar>
void FilterSelection<Scalar>::drop_runaways() {
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
    constexpr Index most = 100;
    if (candidates < 1 || candidates > most) throw std::runtime_error("the training state has no sensible filters");
    candidates_.clear();
    for (Index i = 0; i < candidates; ++i) enter(make(), Origin::nothing);
  }
  Index place = 0;
  for (Candidate& candidate : candidates_)
    archive.group(std::to_string(place++), [&] {
      auto origin = static_cast<Index>(candidate.origin);
      archive.number("origin", origin);
      candidate.origin = static_cast<Origin>(std::clamp<Index>(origin, 0, static_cast<Index>(Origin::all_rows)));
      archive.number("lead_rows", candidate.lead.rows);
      archive.number("lead_mean", candidate.lead.mean);
      archive.number("lead_square", candidate.lead.square);
      candidate.filter.archive(archive);
    });
}

template class FilterSelection<float>;
template class FilterSelection<double>;

}  // namespace dyad
