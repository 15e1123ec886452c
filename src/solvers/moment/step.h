#pragma once

#include <cmath>
#include <stdexcept>
#include <utility>

#include <dyad/moment.h>

#include "base/random.h"
#include "model/sides.h"
#include "solvers/moment/moment_sums.h"

namespace dyad {

/// A model with `columns` random orthonormal factors, whose other parameters are 0.
template <typename Scalar>
Model<Scalar> random_start(const MomentOptions& options, Index columns) {
  options.validate();
  Random random(options.seed, start_stream);
  Model<Scalar> start(options.shape.dim, columns, options.shape.left_dim);
  as_row_major(start.factors, options.shape.dim, columns) =
      Sides(start).orthonormal_sides<Scalar>(random_normal<Scalar>(random, options.shape.dim, columns));
  if (options.shape.diagonal != Diagonal::tied) start.squares.resize(static_cast<std::size_t>(options.shape.dim));
  return start;
}

/// Replaces the iterate by make_next(), unless the sums or the result are not finite. Throws std::invalid_argument if
/// the batch has no rows with a positive weight.
template <typename Scalar, typename Iterate, typename MakeNext>
BatchReport apply_step(Iterate& iterate, const MomentSums<Scalar>& sums, MakeNext&& make_next) {
  if (sums.rows == 0 || sums.weight == 0)
    throw std::invalid_argument("the batch has no rows with a positive weight; add rows before the update");
  BatchReport report;
  report.rows = sums.rows;
  report.residual_rms = std::sqrt(sums.residual_squares / sums.weight);
  if (!sums.is_finite()) return report;
  Iterate next = std::forward<MakeNext>(make_next)();
  report.is_accepted = next.is_finite();
  if (report.is_accepted) iterate = std::move(next);
  return report;
}

}  // namespace dyad
