#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dyad/shape.h>

#include "base/thread_pool.h"
#include "solvers/sampling/colour_classes.h"
#include "solvers/sampling/feature_block.h"
#include "solvers/sampling/feature_groups.h"
#include "solvers/sampling/hyperpriors.h"
#include "solvers/sampling/noise_multipliers.h"
#include "solvers/sampling/sampler_state.h"

/// Folder solvers/sampling: Gibbs sampling of second-order models over cached rows.
///
/// `GibbsSampler` draws one sample per sweep. `FeatureColumns` stores the rows by feature, `FeatureGroups` are the
/// prior groups and `ColourClasses` the sets of features that are drawn in parallel. `FeatureBlock` draws the
/// parameters of a feature, `Hyperpriors` their priors and `NoiseMultipliers` the noise precisions. `SampleAverage` is
/// the average of the samples as one low-rank model, and `VarianceModel` the variance of their predictions.

namespace dyad {

/// Options of GibbsSampler.
struct SamplerOptions {
  ModelShape shape;  ///< symmetric with a zero or free diagonal, or bilinear
  bool is_classification = false;
  std::uint64_t seed = 1;
};

/// Gibbs sampler of the posterior of
///   f = b + w'x + 1/2 sum_{i != j} (v_i'v_j) x_i x_j (+ sum_j u_j x_j^2 for a free diagonal),
/// or f = b + w'x + v'z + sum_ij (a_i'b_j) x_i z_j (bilinear). Regression: y ~ N(f, 1/(alpha weight prod s_j)), see
/// NoiseMultipliers. Classes (targets above 0 are positive): logistic link with Polya-Gamma variables omega,
/// kappa / omega ~ N(f, 1/omega). Parameters have the priors of Hyperpriors.
///
/// Numeric targets are expected to have variance about 1. A sweep takes O(entries rank^2 + features rank^3). Results do
/// not depend on the number of threads and on the order of the features within a colour class. Does not own the
/// columns, the colours and the pool; the caller keeps them alive. Not thread-safe.
class GibbsSampler {
 public:
  GibbsSampler(const FeatureColumns& columns, const FeatureGroups& groups, const ColourClasses& colours,
               const SamplerOptions& options, ThreadPool& pool);

  /// Sets the weights of the rows, in the order of the columns. Rows of weight 0 are predicted but not used. Features
  /// without used rows have the mean parameters of their group.
  void set_weights(std::span<const float> weights);
  /// Sets the targets of the rows, in the order of the columns.
  void set_targets(std::span<const float> targets);

  /// Draws all variables once.
  void sweep();

  /// Linear predictor of row i for the current sample.
  [[nodiscard]] double predictor(Index i) const {
    return static_cast<double>(responses_[static_cast<std::size_t>(i)] - states_.residual(i));
  }
  [[nodiscard]] Index sweeps() const { return sweep_; }
  [[nodiscard]] const SamplerOptions& options() const { return options_; }
  [[nodiscard]] const FeatureColumns& columns() const { return columns_; }
  [[nodiscard]] const FeatureGroups& groups() const { return groups_; }
  /// Whether feature j has rows of positive weight.
  [[nodiscard]] bool is_drawn(Index j) const { return is_drawn_[static_cast<std::size_t>(j)]; }
  /// Whether feature j has a coefficient of its square: free diagonal, and values other than 0 and 1.
  [[nodiscard]] bool has_square(Index j) const { return has_square_[static_cast<std::size_t>(j)]; }
  /// Whether feature j has a noise multiplier: regression, equal non-zero values, and not in all rows.
  [[nodiscard]] bool has_noise(Index j) const { return has_noise_[static_cast<std::size_t>(j)]; }

  /// The current sample. After a change from outside, call recompute_rows().
  struct Sample {
    double intercept = 0;
    double noise_precision = 1;  ///< alpha
    FeatureParameters parameters;
    NoiseMultipliers noise;
    Hyperpriors hyperpriors;
  };
  [[nodiscard]] const Sample& sample() const { return sample_; }
  [[nodiscard]] Sample& sample() { return sample_; }

  /// Recomputes q, the precisions and the residuals of all rows from the sample.
  void recompute_rows();

  /// Bytes of a sampler beside its columns.
  [[nodiscard]] static double bytes_for(double rows, double features, Index rank, bool is_bilinear);

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] FeatureBlock::Side side_of(Index j) const;
  /// Initial standard deviations by place, from the mean sizes of the terms of a row.
  [[nodiscard]] std::vector<double> initial_deviations() const;
  void draw_start();
  void draw_latent_targets();
  void draw_noise();
  void draw_feature_noise();
  void draw_intercept();
  void draw_features();
  void set_means_of_undrawn_features();
  /// Calls visit(feature) for all features of a class, in parallel. `make_visitor` is called once per thread.
  template <typename MakeVisitor>
  void for_each_in_class(const ColourClasses::Features& features, MakeVisitor&& make_visitor);
  /// Sum of visit(first, count) over blocks of rows of fixed size, in parallel.
  template <typename Visit>
  double sum_over_rows(Visit&& visit);

  const FeatureColumns& columns_;
  FeatureGroups groups_;
  const ColourClasses& colours_;
  SamplerOptions options_;
  ThreadPool& pool_;
  std::vector<bool> is_drawn_;
  std::vector<bool> has_square_;
  std::vector<bool> has_noise_;
  std::vector<float> weights_;
  double total_weight_ = 0;
  std::vector<double> feature_weights_;  ///< sum of the weights of the rows of each feature
  std::vector<float> targets_;
  std::vector<float> responses_;  ///< z: the target, or kappa / omega (classes); 0 for rows of weight 0
  Sample sample_;
  RowStates states_;
  Index sweep_ = 0;
};

}  // namespace dyad
