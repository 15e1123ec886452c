#include "solvers/kalman/phase_search.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace dyad {

template <typename Scalar>
PhaseSearch<Scalar>::PhaseSearch(Index dim, std::uint64_t seed)
    : dim_(dim), seed_(seed), losses_(Vector<double>::Zero(candidate_count)) {
  Random random(seed, start_stream);
  Z_ = random_normal<Scalar>(random, dim, candidate_count) / std::sqrt(static_cast<Scalar>(dim));
}

template <typename Scalar>
void PhaseSearch<Scalar>::grow(Index dim) {
  if (dim <= dim_) return;
  Random random(seed_, start_stream - static_cast<std::uint64_t>(dim));
  const Scalar rms_entry = Z_.norm() / std::sqrt(static_cast<Scalar>(dim_ * candidate_count));
  RowMajorMatrix<Scalar> grown(dim, candidate_count);
  grown << Z_, rms_entry * random_normal<Scalar>(random, dim - dim_, candidate_count);
  Z_ = std::move(grown);
  dim_ = dim;
}

template <typename Scalar>
void PhaseSearch<Scalar>::learn(const Rows<Scalar>& rows) {
  // Fraction of the full Kaczmarz step, which would fit the row exactly. Sensitivity: docs/constants.md.
  constexpr double relaxation = 0.7;
  // Rows in the moving averages, per feature. Sensitivity: docs/constants.md.
  constexpr double window_rows_per_feature = 2;
  const double window = window_rows_per_feature * static_cast<double>(dim_);
  Vector<Scalar> projection(candidate_count);
  Vector<Scalar> step(candidate_count);
  for (Index i = 0; i < rows.count(); ++i) {
    projection.setZero();
    Scalar squared_norm = 0;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      projection += x * Z_.row(j).transpose();
      squared_norm += x * x;
    });
    if (!(rows.weight(i) > 0) || !(squared_norm > 0)) continue;
    const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
    rows_ += 1;
    const double rate = 1 / std::min(rows_, window);
    target_variance_ += ((y - mean_target_) * (y - mean_target_) - target_variance_) * rate;
    mean_target_ += (y - mean_target_) * rate;
    // E[y] = |a|^2 |x|^2 / dim for random a: the first target gives the initial norm of the candidates.
    if (rows_ == 1) {
      const double factor = std::sqrt(std::max(y, 0.0) * static_cast<double>(dim_) / static_cast<double>(squared_norm));
      if (factor > 0) Z_ *= static_cast<Scalar>(factor);
    }
    const double amplitude = std::sqrt(std::max(0.0, y));
    for (Index c = 0; c < candidate_count; ++c) {
      const auto p = static_cast<double>(projection[c]);
      losses_[c] += ((y - p * p) * (y - p * p) - losses_[c]) * rate;
      step[c] = static_cast<Scalar>(relaxation * (std::copysign(amplitude, p) - p) / static_cast<double>(squared_norm));
    }
    rows.for_each_entry(i, [&](Index j, Scalar x) { Z_.row(j) += x * step.transpose(); });
  }
}

template <typename Scalar>
bool PhaseSearch<Scalar>::is_done() const {
  // Minimum number of rows per feature, after which the moving averages are those of the current candidates.
  // Sensitivity: docs/constants.md.
  constexpr double min_rows_per_feature = 4;
  // Number of rows per feature after which the search ends in any case. About ten suffice on Gaussian rows.
  // Sensitivity: docs/constants.md.
  constexpr double max_rows_per_feature = 12;
  // Residual variance, relative to that of the targets, at which the search ends early. Sensitivity: docs/constants.md.
  constexpr double max_residual_ratio = 0.05;
  const auto d = static_cast<double>(dim_);
  return rows_ >= max_rows_per_feature * d ||
         (rows_ >= min_rows_per_feature * d && residual_variance() < max_residual_ratio * target_variance_);
}

template <typename Scalar>
Model<Scalar> PhaseSearch<Scalar>::best_model() const {
  Index best = 0;
  losses_.minCoeff(&best);
  Model<Scalar> model(dim_, 1);
  const Scalar norm = Z_.col(best).norm();
  model.spectrum[0] = norm * norm;
  if (norm > 0) as_vector(model.factors) = Z_.col(best) / norm;
  return model;
}

template <typename Scalar>
void PhaseSearch<Scalar>::archive(Archive& archive) {
  archive.matrix("vectors", Z_, dim_, candidate_count);
  archive.matrix("losses", losses_, candidate_count, 1);
  archive.number("rows", rows_);
  archive.number("mean_target", mean_target_);
  archive.number("spread", target_variance_);
}

template class PhaseSearch<float>;
template class PhaseSearch<double>;

}  // namespace dyad
