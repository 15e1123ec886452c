#pragma once

#include <optional>

#include "model/sampled_posterior.h"
#include "training/multi_pass/held_out_folds.h"

namespace dyad {

/// Fit by sampling.
struct SampledFit {
  Posterior<double> fit;       ///< the averaged model, without variances
  SampledPosterior posterior;  ///< its unknown_factors multiply rows of `fit.means.A`
};

/// Fits the cached rows by Gibbs sampling (GibbsSampler).
///
/// A first chain does not use the held-out rows. Its held-out losses determine the rank of the result and the number n
/// of samples: the average of n samples has an excess loss of about c/n, so that the losses of n/2 and n samples differ
/// by c/n. The chain then continues with all rows, and the average of its samples is the result. With validation rows,
/// the first chain uses all cached rows and continues until it has n samples.
///
/// `rows`: view of the cached rows, divided by their scales. `max_sweeps`: limit of work. Writes losses and the number
/// of samples to `result`. Null if one pass is selected, or after an interruption before the first sample. After a
/// later interruption, the result is the average of the samples so far.
template <typename Scalar>
std::optional<SampledFit> fit_by_sampling(const MultiPassContext<Scalar>& context, const Rows<Scalar>& rows,
                                          HeldOutFolds<Scalar>& folds, Index max_sweeps,
                                          MultiPassResult<Scalar>& result);

/// Smallest limit of work with which fit_by_sampling() is started.
inline constexpr Index min_sampling_sweeps = 150;

/// Estimated bytes that fit_by_sampling() needs beside the cached rows.
double estimate_sampling_bytes(double rows, double entries, double features, const ModelShape& shape);

}  // namespace dyad
