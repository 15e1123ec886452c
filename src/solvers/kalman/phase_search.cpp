#include "solvers/kalman/phase_search.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace dyad {

template <typename Scalar>
PhaseSearch<Scalar>::PhaseSearch(Index dim, std::uint64_t seed)
    : dim_(dim), seed_(seed), losses_(Vector<double>::Zero(searchers)) {
  Random random(seed, start_stream);
  Z_ = random_normal<Scalar>(random, dim, searchers) / std::sqrt(static_cast<Scalar>(dim));
}

template <typename Scalar>
void PhaseSearch<Scalar>::grow(Index dim) {
  if (dim <= dim_) return;
  Random random(seed_, start_stream - static_cast<std::uint64_t>(dim));
  const Scalar size = Z_.norm() / std::sqrt(static_cast<Scalar>(dim_ * searchers));
  Tall<Scalar> grown(dim, searchers);
  grown << Z_, size * random_normal<Scalar>(random, dim - dim_, searchers);
  Z_ = std::move(grown);
  dim_ = dim;
}

template <typename Scalar>
void PhaseSearch<Scalar>::learn(const Rows<Scalar>& rows) {
  constexpr double relaxation = 0.7;
  const double window = 2 * static_cast<double>(dim_);
  Vector<Scalar> projection(searchers);
  Vector<Scalar> step(searchers);
  for (Index i = 0; i < rows.count(); ++i) {
    projection.setZero();
    Scalar length = 0;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      projection += x * Z_.row(j).transpose();
      length += x * x;
    });
    if (!(rows.weight(i) > 0) || !(length > 0)) continue;
    const auto y = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
    rows_ += 1;
    const double rate = 1 / std::min(rows_, window);
    spread_ += ((y - mean_target_) * (y - mean_target_) - spread_) * rate;
    mean_target_ += (y - mean_target_) * rate;
    // |a|^2 from the first target; the steps keep the length right from there on.
    if (rows_ == 1) {
      const double factor = std::sqrt(std::max(y, 0.0) * static_cast<double>(dim_) / static_cast<double>(length));
      if (factor > 0) Z_ *= static_cast<Scalar>(factor);
    }
    const double amplitude = std::sqrt(std::max(0.0, y));
    for (Index c = 0; c < searchers; ++c) {
      const auto p = static_cast<double>(projection[c]);
      losses_[c] += ((y - p * p) * (y - p * p) - losses_[c]) * rate;
      step[c] = static_cast<Scalar>(relaxation * (std::copysign(amplitude, p) - p) / static_cast<double>(length));
    }
    rows.for_each_entry(i, [&](Index j, Scalar x) { Z_.row(j) += x * step.transpose(); });
  }
}

template <typename Scalar>
bool PhaseSearch<Scalar>::is_done() const {
  constexpr double fewest = 4;  // rows per feature
  constexpr double most = 12;
  constexpr double close = 0.05;
  const auto d = static_cast<double>(dim_);
  return rows_ >= most * d || (rows_ >= fewest * d && residual_variance() < close * spread_);
}

template <typename Scalar>
Model<Scalar> PhaseSearch<Scalar>::best() const {
  Index at = 0;
  losses_.minCoeff(&at);
  Model<Scalar> model(dim_, 1);
  const Scalar length = Z_.col(at).norm();
  model.spectrum[0] = length * length;
  if (length > 0) as_vector(model.factors) = Z_.col(at) / length;
  return model;
}

template <typename Scalar>
void PhaseSearch<Scalar>::archive(Archive& archive) {
  archive.matrix("vectors", Z_, dim_, searchers);
  archive.matrix("losses", losses_, searchers, 1);
  archive.number("rows", rows_);
  archive.number("mean_target", mean_target_);
  archive.number("spread", spread_);
}

template class PhaseSearch<float>;
template class PhaseSearch<double>;

}  // namespace dyad
