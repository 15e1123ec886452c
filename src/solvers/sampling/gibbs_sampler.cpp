#include "solvers/sampling/gibbs_sampler.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "solvers/sampling/random_draws.h"

namespace dyad {
namespace {

/// Sweeps at the start with constant hyperpriors: the first factors are as small as their start, and hyperpriors drawn
/// from them would keep them there. Sensitivity: docs/constants.md.
constexpr Index sweeps_with_fixed_priors = 10;
/// Sweeps between recomputations of the rows, which remove accumulated rounding errors of single precision.
constexpr Index sweeps_between_recomputations = 10;
/// Initial share of the variance of the target that the pairs of a row, its weights and its squares explain each.
/// Sensitivity: docs/constants.md.
constexpr double initial_share = 0.5;
/// Prior precision of the intercept: standard deviation 10, for targets of variance 1 or log-odds.
constexpr double intercept_precision = 1e-2;
/// Rows per block of sums and of Polya-Gamma draws; fixed, so that results do not depend on the number of threads.
constexpr Index rows_per_block = 4096;
/// Features that a thread takes at once. Sensitivity: docs/constants.md.
constexpr std::size_t features_per_batch = 32;

}  // namespace

GibbsSampler::GibbsSampler(const FeatureColumns& columns, const FeatureGroups& groups, const ColourClasses& colours,
                           const SamplerOptions& options, ThreadPool& pool)
    : columns_(columns),
      groups_(groups),
      colours_(colours),
      options_(options),
      pool_(pool),
      targets_(columns.targets()),
      responses_(columns.targets()),
      sample_{.parameters = FeatureParameters(columns.dim(), options.shape.rank),
              .noise = NoiseMultipliers(columns.dim(), groups_.count),
              .hyperpriors = Hyperpriors(groups_.count, initial_deviations())},
      states_(columns.row_count(), sample_.parameters.width(), options.shape.is_bilinear() ? 2 : 1) {
  const bool has_squares = !options.shape.is_bilinear() && options.shape.diagonal == Diagonal::free;
  for (Index j = 0; j < columns.dim(); ++j) {
    const FeatureColumns::Column column = columns.column(j);
    bool is_indicator = true;
    bool is_constant = true;
    for (Index e = 0; e < column.count(); ++e) {
      is_indicator = is_indicator && column.value(e) == 1;
      is_constant = is_constant && column.value(e) == column.value(0);
    }
    has_square_.push_back(has_squares && !is_indicator);
    has_noise_.push_back(!options.is_classification && is_constant && column.count() < columns.row_count());
  }
  set_weights(columns.weights());
  draw_start();
}

void GibbsSampler::set_weights(std::span<const float> weights) {
  weights_.assign(weights.begin(), weights.end());
  total_weight_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  feature_weights_.assign(at(columns_.dim()), 0.0);
  is_drawn_.assign(at(columns_.dim()), false);
  for (Index j = 0; j < columns_.dim(); ++j) {
    for (const std::int32_t row : columns_.column(j).rows) feature_weights_[at(j)] += weights_[at(row)];
    is_drawn_[at(j)] = feature_weights_[at(j)] > 0;
  }
  recompute_rows();
}

void GibbsSampler::set_targets(std::span<const float> targets) {
  targets_.assign(targets.begin(), targets.end());
  recompute_rows();
}

FeatureBlock::Side GibbsSampler::side_of(Index j) const {
  if (!options_.shape.is_bilinear()) return {};
  const Index width = sample_.parameters.width();
  const bool is_left = j < options_.shape.left_dim;
  return {.read = is_left ? width : 0, .write = is_left ? 0 : width, .is_symmetric = false};
}

std::vector<double> GibbsSampler::initial_deviations() const {
  const auto rows = static_cast<std::size_t>(columns_.row_count());
  const Index left_dim = options_.shape.left_dim;
  std::vector<double> left(rows);
  std::vector<double> right(rows);
  std::vector<double> fourth_powers(rows);
  for (Index j = 0; j < columns_.dim(); ++j) {
    const FeatureColumns::Column column = columns_.column(j);
    for (Index e = 0; e < column.count(); ++e) {
      const double square = static_cast<double>(column.value(e)) * static_cast<double>(column.value(e));
      (j < left_dim ? left : right)[at(column.row(e))] += square;
      fourth_powers[at(column.row(e))] += square * square;
    }
  }
  double squares = 0;
  double pairs = 0;
  double fourths = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    squares += left[i] + right[i];
    pairs += left_dim > 0 ? left[i] * right[i] : (right[i] * right[i] - fourth_powers[i]) / 2;
    fourths += fourth_powers[i];
  }
  // The variance of the pairs of a row is the deviation to the power of 4 times rank * pairs. Rows without pairs have
  // factors that no row determines; they get the deviation of one pair per row.
  const auto count = std::max(1.0, static_cast<double>(rows));
  const double mean_pairs = pairs > 0 ? pairs / count : 1;
  const double mean_squares = squares > 0 ? squares / count : 1;
  const double mean_fourths = fourths > 0 ? fourths / count : 1;
  std::vector<double> deviations(
      at(options_.shape.rank), std::pow(initial_share / (static_cast<double>(options_.shape.rank) * mean_pairs), 0.25));
  deviations.push_back(std::sqrt(initial_share / mean_squares));
  deviations.push_back(std::sqrt(initial_share / mean_fourths));
  return deviations;
}

void GibbsSampler::draw_start() {
  for (Index j = 0; j < columns_.dim(); ++j) {
    if (columns_.column(j).count() == 0) continue;
    Random random = draw_random(options_.seed, 0, DrawPurpose::start, j);
    for (Index c = 0; c < options_.shape.rank; ++c)
      sample_.parameters.at(j, c) = static_cast<float>(sample_.hyperpriors.deviation(c) * random.normal());
  }
  recompute_rows();
}

template <typename MakeVisitor>
void GibbsSampler::for_each_in_class(const ColourClasses::Features& features, MakeVisitor&& make_visitor) {
  std::atomic<std::size_t> next{0};
  const auto work = [&](int) {
    auto visit = make_visitor();
    for (std::size_t first = next.fetch_add(features_per_batch); first < features.size();
         first = next.fetch_add(features_per_batch))
      for (std::size_t i = first; i < std::min(first + features_per_batch, features.size()); ++i) visit(features[i]);
  };
  if (features.size() <= features_per_batch)
    work(0);
  else
    pool_.run(work);
}

template <typename Visit>
double GibbsSampler::sum_over_rows(Visit&& visit) {
  const Index rows = columns_.row_count();
  if (rows <= rows_per_block) return visit(0, rows);  // one block: waking the threads takes longer than the sum
  const Index blocks = (rows + rows_per_block - 1) / rows_per_block;
  std::vector<double> sums(at(blocks));
  pool_.split(blocks, [&](int, IndexRange range) {
    for (Index block = range.first; block < range.first + range.count; ++block) {
      const Index first = block * rows_per_block;
      sums[at(block)] = visit(first, std::min(rows_per_block, rows - first));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void GibbsSampler::recompute_rows() {
  const Index width = sample_.parameters.width();
  const bool is_bilinear = options_.shape.is_bilinear();
  sum_over_rows([&](Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      std::fill(states_.row(i), states_.row(i) + states_.residual_offset() + 1, 0.0F);
      if (!options_.is_classification) states_.precision(i) = weights_[at(i)];
    }
    return 0.0;
  });
  for (const ColourClasses::Features& features : colours_.classes())
    for_each_in_class(features, [&] {
      return [&](Index j) {
        const FeatureColumns::Column column = columns_.column(j);
        const float* factors = sample_.parameters.factors(j);
        const float weight = sample_.parameters.weight(j);
        float square = sample_.parameters.square(j);
        if (!is_bilinear)
          for (Index c = 0; c < width; ++c) square -= factors[c] * factors[c] / 2;
        const auto multiplier = static_cast<float>(sample_.noise.multiplier(j));
        const Index offset = side_of(j).write;
        for (Index e = 0; e < column.count(); ++e) {
          float* row = states_.row(column.row(e));
          const float x = column.value(e);
          for (Index c = 0; c < width; ++c) row[offset + c] += x * factors[c];
          row[states_.residual_offset()] += x * (weight + x * square);
          if (has_noise_[at(j)]) row[states_.precision_offset()] *= multiplier;
        }
      };
    });
  sum_over_rows([&](Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      const float* row = states_.row(i);
      double f = sample_.intercept + static_cast<double>(states_.residual(i));
      for (Index c = 0; c < width; ++c) {
        const auto q = static_cast<double>(row[c]);
        f += is_bilinear ? q * static_cast<double>(row[width + c]) : q * q / 2;
      }
      if (!options_.is_classification) responses_[at(i)] = weights_[at(i)] > 0 ? targets_[at(i)] : 0.0F;
      states_.residual(i) = static_cast<float>(static_cast<double>(responses_[at(i)]) - f);
    }
    return 0.0;
  });
}

/// Classes: omega ~ PG(weight, f), z = weight (y - 1/2) / omega.
void GibbsSampler::draw_latent_targets() {
  sum_over_rows([&](Index first, Index count) {
    Random random = draw_random(options_.seed, sweep_, DrawPurpose::rows, first / rows_per_block);
    for (Index i = first; i < first + count; ++i) {
      const double f = predictor(i);
      const auto weight = static_cast<double>(weights_[at(i)]);
      double omega = 0;
      double response = 0;
      if (weight > 0) {
        omega = draw_polya_gamma(random, weight, f);
        response = (targets_[at(i)] > 0 ? 0.5 : -0.5) * weight / omega;
      }
      responses_[at(i)] = static_cast<float>(response);
      states_.precision(i) = static_cast<float>(omega);
      states_.residual(i) = static_cast<float>(static_cast<double>(responses_[at(i)]) - f);
    }
    return 0.0;
  });
}

/// alpha ~ Gamma((1 + n)/2, (1 + sum omega e^2)/2) for the prior Gamma(1/2, 1/2).
void GibbsSampler::draw_noise() {
  const double squares = sum_over_rows([&](Index first, Index count) {
    double sum = 0;
    for (Index i = first; i < first + count; ++i) {
      const auto e = static_cast<double>(states_.residual(i));
      sum += static_cast<double>(states_.precision(i)) * e * e;
    }
    return sum;
  });
  Random random = draw_random(options_.seed, sweep_, DrawPurpose::noise, 0);
  sample_.noise_precision = draw_gamma(random, (1 + total_weight_) / 2) / ((1 + squares) / 2);
}

void GibbsSampler::draw_feature_noise() {
  for (const ColourClasses::Features& features : colours_.classes())
    for_each_in_class(features, [&] {
      return [&](Index j) {
        if (!has_noise_[at(j)] || !is_drawn_[at(j)]) return;
        const FeatureColumns::Column column = columns_.column(j);
        double squares = 0;
        for (const std::int32_t row : column.rows) {
          const auto e = static_cast<double>(states_.residual(row));
          squares += static_cast<double>(states_.precision(row)) * e * e;
        }
        squares *= sample_.noise_precision / sample_.noise.multiplier(j);
        const auto ratio = static_cast<float>(sample_.noise.draw_multiplier(
            j, groups_.group_of[at(j)], feature_weights_[at(j)], squares, options_.seed, sweep_));
        for (const std::int32_t row : column.rows) states_.precision(row) *= ratio;
      };
    });
  std::vector<bool> is_included(has_noise_);
  for (std::size_t j = 0; j < is_included.size(); ++j) is_included[j] = is_included[j] && is_drawn_[j];
  sample_.noise.draw_shapes(groups_, is_included, options_.seed, sweep_);
}

void GibbsSampler::draw_intercept() {
  double precision = 0;
  const double sum = sum_over_rows([&](Index first, Index count) {
    double block = 0;
    for (Index i = first; i < first + count; ++i)
      block += static_cast<double>(states_.precision(i)) * static_cast<double>(states_.residual(i));
    return block;
  });
  precision = sum_over_rows([&](Index first, Index count) {
    double block = 0;
    for (Index i = first; i < first + count; ++i) block += static_cast<double>(states_.precision(i));
    return block;
  });
  const double alpha = options_.is_classification ? 1 : sample_.noise_precision;
  const double posterior_precision = alpha * precision + intercept_precision;
  Random random = draw_random(options_.seed, sweep_, DrawPurpose::intercept, 0);
  const double mean = alpha * (sum + precision * sample_.intercept) / posterior_precision;
  const double drawn = mean + random.normal() / std::sqrt(posterior_precision);
  const auto change = static_cast<float>(drawn - sample_.intercept);
  sample_.intercept = drawn;
  for (Index i = 0; i < columns_.row_count(); ++i) states_.residual(i) -= change;
}

void GibbsSampler::draw_features() {
  for (const ColourClasses::Features& features : colours_.classes())
    for_each_in_class(features, [&] {
      return [&, block = FeatureBlock(sample_.parameters.width())](Index j) mutable {
        if (!is_drawn_[at(j)]) return;
        Random random = draw_random(options_.seed, sweep_, DrawPurpose::parameters, j);
        const Index group = groups_.group_of[at(j)];
        block.draw(columns_.column(j), j,
                   {.means = sample_.hyperpriors.means(group),
                    .precisions = sample_.hyperpriors.precisions(group),
                    .noise_precision = options_.is_classification ? 1 : sample_.noise_precision,
                    .has_square = has_square_[at(j)]},
                   side_of(j), sample_.parameters, states_, random);
      };
    });
}

/// Sets the parameters of features without used rows to the means of their group, and updates their rows, which are
/// predicted only.
void GibbsSampler::set_means_of_undrawn_features() {
  FeatureParameters& parameters = sample_.parameters;
  std::vector<float> change(at(parameters.width()));
  for (Index j = 0; j < columns_.dim(); ++j) {
    const std::int32_t group = groups_.group_of[at(j)];
    if (is_drawn_[at(j)]) continue;
    const double* means = sample_.hyperpriors.means(group);
    const Index rank = parameters.rank();
    const FeatureColumns::Column column = columns_.column(j);
    const FeatureBlock::Side side = side_of(j);
    const auto weight = static_cast<float>(means[rank]);
    const auto square = has_square_[at(j)] ? static_cast<float>(means[rank + 1]) : 0.0F;
    for (Index c = 0; c < rank; ++c) change[at(c)] = static_cast<float>(means[c]) - parameters.at(j, c);
    for (Index e = 0; e < column.count(); ++e) {
      float* row = states_.row(column.row(e));
      const float x = column.value(e);
      float sum = x * (weight - parameters.weight(j) + x * (square - parameters.square(j)));
      for (Index c = 0; c < rank; ++c) {
        const float own = side.is_symmetric ? x * parameters.at(j, c) : 0.0F;
        sum += x * (row[side.read + c] - own) * change[at(c)];
        row[side.write + c] += x * change[at(c)];
      }
      row[states_.residual_offset()] -= sum;
    }
    for (Index c = 0; c < rank; ++c) parameters.at(j, c) = static_cast<float>(means[c]);
    parameters.weight(j) = weight;
    parameters.square(j) = square;
  }
}

void GibbsSampler::sweep() {
  ++sweep_;
  if (sweep_ % sweeps_between_recomputations == 0) recompute_rows();
  if (options_.is_classification) {
    draw_latent_targets();
  } else {
    draw_noise();
    draw_feature_noise();
  }
  draw_intercept();
  if (sweep_ > sweeps_with_fixed_priors)
    sample_.hyperpriors.draw(sample_.parameters, groups_, is_drawn_, has_square_, options_.seed, sweep_);
  draw_features();
  set_means_of_undrawn_features();
}

double GibbsSampler::bytes_for(double rows, double features, Index rank, bool is_bilinear) {
  return rows * (RowStates::bytes_per_row(rank, is_bilinear ? 2 : 1) + 3 * sizeof(float)) +
         features * (static_cast<double>(rank + SamplerSimd::count + 2) * sizeof(float) + 2 * sizeof(double));
}

}  // namespace dyad
