#include "solvers/anova/pairs/pair_selection.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

namespace dyad {
namespace {

/// Limit on the total number of coefficients of all pairs.
constexpr Index max_pair_knots = 2000;
/// Limit on the number of coefficients of one pair.
constexpr Index max_knots_per_pair = 512;
constexpr Index max_rounds = 6;
/// Smallest gain in evidence of a pair or a finer grid.
constexpr double min_gain_nats = 5;
/// Rounds end if the candidates together gain less than this number of nats per row.
constexpr double min_gain_per_row = 0.0005;
/// After each round; the next round continues from its result.
constexpr EstimationEffort round_effort{.iterations = 4, .class_steps = 2, .reuses_gram = true};
constexpr EstimationEffort last_effort{.iterations = 4, .class_steps = 4, .reuses_gram = true};

}  // namespace

PairSelection::PairSelection(TermFit& fit) : fit_(fit), main_count_(fit.terms().size()) {
  const std::vector<Index>& columns = fit.columns();
  for (std::size_t a = 0; a < columns.size(); ++a)
    for (std::size_t b = a + 1; b < columns.size(); ++b) pairs_.emplace_back(columns[a], columns[b]);
  const auto pairs = static_cast<double>(std::max<std::size_t>(1, pairs_.size()));
  // The largest of N gains of pairs without effect is about log N.
  min_gain_ = std::max(min_gain_nats, 2 + std::log(pairs));
  coarse_knots_ = static_cast<Index>(std::clamp(std::sqrt(max_pair_knots / pairs), 6.0, 10.0));
}

bool PairSelection::add_round() {
  if (rounds_ == max_rounds || fit_.was_interrupted()) return false;
  fit_.update_response();
  const Index limit = std::max<Index>(8, static_cast<Index>(fit_.columns().size())) << rounds_;
  std::vector<Candidate> candidates = screen_pairs(limit);
  for (Candidate& finer : screen_finer_grids()) candidates.push_back(std::move(finer));
  if (fit_.was_interrupted()) return false;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.gain_per_knot > b.gain_per_knot; });
  double total = 0;
  for (const Candidate& candidate : candidates) total += candidate.gain.nats;
  if (total < min_gain_per_row * fit_.rows().total_weight) return false;
  std::vector<std::unique_ptr<Term>> added;
  std::set<Index> replaced;
  for (Index c = 0; c < std::min<Index>(limit, std::ssize(candidates)); ++c) {
    Candidate& candidate = candidates[static_cast<std::size_t>(c)];
    if (candidate.added_knots > max_pair_knots - pair_knots_) continue;
    pair_knots_ += candidate.added_knots;
    set_prior(candidate);
    if (candidate.replaced >= 0) replaced.insert(candidate.replaced);
    added.push_back(std::move(candidate.term));
  }
  if (added.empty()) return false;
  const auto refined = static_cast<Index>(replaced.size());
  const Index new_pairs = std::ssize(added) - refined;
  pair_count_ += new_pairs;
  add_terms(replaced, std::move(added), round_effort);
  ++rounds_;
  fit_.report(fmt::format("round {}: {} pairs, {} finer grids", rounds_, new_pairs, refined));
  return true;
}

void PairSelection::set_prior(Candidate& candidate) const {
  candidate.term->set_kernels(candidate.term->default_kernels());
  const double share = 1.0 / static_cast<double>(candidate.term->kernels.size());
  for (TermKernel& kernel : candidate.term->kernels) {
    kernel.penalty = fit_.penalty();
    if (candidate.replaced < 0) {
      kernel.theta = std::max(candidate.gain.theta, 1e-3 * fit_.noise_variance()) * share;
      continue;
    }
    kernel.theta = 1e-3 * fit_.noise_variance() * share;
    for (const TermKernel& old : fit_.terms()[static_cast<std::size_t>(candidate.replaced)]->kernels)
      if (old.kernel == kernel.kernel) kernel.theta = std::max(kernel.theta, old.theta);
  }
}

void PairSelection::add_terms(const std::set<Index>& replaced, std::vector<std::unique_ptr<Term>> added,
                              const EstimationEffort& effort) {
  for (const auto& term : added) std::erase(pairs_, term->columns());
  fit_.replace_terms(replaced, std::move(added), effort);
}

std::vector<Candidate> PairSelection::screen_pairs(Index limit) {
  const std::vector<double> residuals = fit_.weighted_residuals(nullptr);
  const ScreenRows rows{residuals, fit_.rows().weights, fit_.noise_variance()};
  std::vector<std::unique_ptr<AxisSpectrum>> spectra(fit_.table().columns.size());
  for (const Index column : fit_.columns())
    spectra[static_cast<std::size_t>(column)] =
        std::make_unique<AxisSpectrum>(fit_.axes().get(column, coarse_knots_), fit_.rows().weights);
  std::vector<std::pair<double, std::size_t>> order(pairs_.size());
  fit_.for_each_parallel(pairs_.size(), [&](std::size_t p) {
    const auto [i, j] = pairs_[p];
    const FittedAxis& first = fit_.axes().get(i, coarse_knots_);
    const FittedAxis& second = fit_.axes().get(j, coarse_knots_);
    order[p] = {
        AxisSpectrum::approximate_gain(*spectra[static_cast<std::size_t>(i)], *spectra[static_cast<std::size_t>(j)],
                                       {&first.hats, &second.hats, first.axis.size(), second.axis.size()}, rows)
            .nats,
        p};
  });
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  // The approximation ranks pairs; correlated columns change gains by a factor of about two.
  std::erase_if(order, [&](const auto& entry) { return entry.first < min_gain_ / 2; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(2 * limit)));
  std::vector<Candidate> candidates(order.size());
  fit_.for_each_parallel(order.size(), [&](std::size_t c) {
    const auto [i, j] = pairs_[order[c].second];
    candidates[c] = evaluate_candidate(fit_.axes(), {i, j}, {coarse_knots_, coarse_knots_}, rows);
  });
  std::erase_if(candidates, [&](const Candidate& candidate) { return !(candidate.gain.nats > min_gain_); });
  return candidates;
}

std::vector<Candidate> PairSelection::screen_finer_grids() {
  for (std::size_t t = main_count_; t < fit_.terms().size(); ++t)  // creates the axes before the threads read the cache
    for (const auto& knots : finer_grids(*fit_.terms()[t])) {
      fit_.axes().get(fit_.terms()[t]->columns().first, knots.first);
      fit_.axes().get(fit_.terms()[t]->columns().second, knots.second);
    }
  std::vector<Candidate> best(fit_.terms().size() - main_count_);
  fit_.for_each_parallel(best.size(), [&](std::size_t b) {
    const std::size_t t = main_count_ + b;
    const Term& term = *fit_.terms()[t];
    const std::vector<double> residuals = fit_.weighted_residuals(&term);
    const ScreenRows rows{residuals, fit_.rows().weights, fit_.noise_variance()};
    const PairKnotLimits limits{max_knots_per_pair, max_pair_knots - pair_knots_, min_gain_};
    best[b] = find_finer_grid(term, fit_.axes(), rows, limits);
    best[b].replaced = static_cast<Index>(t);
  });
  std::erase_if(best, [](const Candidate& candidate) { return candidate.term == nullptr; });
  return best;
}

void PairSelection::add_shared_pairs() {
  // The smallest grid with a curve has three knots per axis, that of a product two.
  constexpr Index min_curve_knots = 3;
  constexpr Index product_knots = 2;
  if (pairs_.empty()) return;
  const double room = static_cast<double>(max_pair_knots - pair_knots_) / static_cast<double>(pairs_.size());
  const auto curve_knots = std::min(coarse_knots_, static_cast<Index>(std::sqrt(std::max(0.0, room))));
  std::vector<Index> resolutions;
  if (fit_.options().has_curves && curve_knots >= min_curve_knots) resolutions.push_back(curve_knots);
  if (room >= 1) resolutions.push_back(product_knots);
  const TermFit::State state = fit_.state();
  const double score = fit_.score();
  for (const Index knots : resolutions) {
    std::vector<std::unique_ptr<Term>> added = make_shared_pairs(knots);
    const auto count = std::ssize(added);
    if (count == 0) return;
    fit_.replace_terms({}, std::move(added), last_effort);
    if (fit_.was_interrupted()) return;
    if (fit_.score() > score) return fit_.report(fmt::format("{} pairs with shared variances", count));
    fit_.restore(state);
  }
}

std::vector<std::unique_ptr<Term>> PairSelection::make_shared_pairs(Index knots) {
  std::vector<std::unique_ptr<Term>> terms;
  for (const auto& [i, j] : pairs_) {
    auto term = std::make_unique<Term>(fit_.axes().get(i, knots), fit_.axes().get(j, knots), std::pair{knots, knots});
    term->set_kernels(term->default_kernels());
    if (term->kernels.empty()) continue;
    for (TermKernel& kernel : term->kernels) {
      kernel.theta = 1e-2 * fit_.noise_variance() / static_cast<double>(term->kernels.size());
      kernel.tie = static_cast<Index>(axis_kernel_count) * (1 + static_cast<Index>(kernel.kernel.first)) +
                   static_cast<Index>(*kernel.kernel.second);
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

}  // namespace dyad
