#include "solvers/moment/moment_sums.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "linalg/row_products.h"
#include "model/forward_pass.h"

namespace dyad {
namespace {

template <typename Scalar>
void require_usable(const Rows<Scalar>& rows, Index dim) {
  if (rows.dim() != dim)
    throw std::invalid_argument("the solver has " + std::to_string(dim) + " features, the rows have " +
                                std::to_string(rows.dim()));
  if (!rows.has_targets() && rows.count() > 0) throw std::invalid_argument("rows to learn from need targets");
}

/// Called only when a sum is not finite: says whether the data is to blame.
template <typename Scalar>
void refuse_non_finite(const Rows<Scalar>& rows) {
  const auto refuse = [](Index i, const std::string& what) {
    throw std::invalid_argument("row " + std::to_string(i) + " of the block: " + what +
                                " is NaN or infinite, expected a finite number");
  };
  for (Index i = 0; i < rows.count(); ++i) {
    if (!std::isfinite(rows.targets()[static_cast<std::size_t>(i)])) refuse(i, "the target");
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (!std::isfinite(x)) refuse(i, "feature " + std::to_string(j));
    });
  }
}

}  // namespace

template <typename Scalar>
bool MomentSums<Scalar>::is_finite() const {
  return std::isfinite(p0) && std::isfinite(residual_squares) && moments.allFinite() && p2.allFinite();
}

template <typename Scalar>
MomentSums<Scalar>& MomentSums<Scalar>::operator+=(const MomentSums& other) {
  rows += other.rows;
  weight += other.weight;
  p0 += other.p0;
  residual_squares += other.residual_squares;
  moments += other.moments;
  p2 += other.p2;
  return *this;
}

template <typename Scalar>
void MomentSums<Scalar>::grow(const Growth& growth) {
  moments = growth.grown(moments);
  if (p2.size() > 0) p2 = growth.grown(p2);
}

template <typename Scalar>
void MomentSums<Scalar>::archive(Archive& archive, Index dim, Index probes) {
  archive.number("rows", rows);
  archive.number("weight", weight);
  archive.number("p0", p0);
  archive.number("residual_squares", residual_squares);
  archive.matrix("moments", moments, dim, probes + 1);
  archive.matrix("p2", p2, p2.size(), 1);
}

template <typename Scalar>
MomentAccumulator<Scalar>::MomentAccumulator(ThreadPool& pool, const Model<Scalar>& model,
                                             const Eigen::Ref<const Tall<Scalar>>& probe, Collect collect)
    : pool_(pool),
      model_(model),
      sides_(model),
      probes_(probe.cols()),
      collect_(collect),
      probe_is_model_(probe.data() == model.factors.data()),
      projector_(model.dim(), model.rank() + 1 + (probe_is_model_ ? 0 : probes_)),
      by_worker_(static_cast<std::size_t>(pool.count()),
                 OfOneWorker{MomentSums<Scalar>(model.dim(), probes_, collect.squares),
                             FeatureMoments(collect.features ? model.dim() : 0)}) {
  fill_projector(probe);
}

template <typename Scalar>
void MomentAccumulator<Scalar>::fill_projector(const Eigen::Ref<const Tall<Scalar>>& probe) {
  projector_.leftCols(model_.rank()) = as_tall(model_.factors, model_.dim(), model_.rank());
  projector_.col(model_.rank()) = as_vector(model_.weights);
  if (!probe_is_model_) projector_.rightCols(probes_) = probe;
}

template <typename Scalar>
void MomentAccumulator<Scalar>::grow(const Growth& growth) {
  sides_ = Sides(model_);
  projector_.resize(model_.dim(), projector_.cols());
  fill_projector(as_tall(model_.factors, model_.dim(), model_.rank()));
  for (OfOneWorker& own : by_worker_) {
    own.sums.grow(growth);
    if (collect_.features) own.features.grow(growth);
  }
}

template <typename Scalar>
void MomentAccumulator<Scalar>::restore(const MomentSums<Scalar>& sums, const FeatureMoments& features) {
  by_worker_.front().sums = sums;
  by_worker_.front().features = features;
}

template <typename Scalar>
void MomentAccumulator<Scalar>::add(const Rows<Scalar>& rows, std::span<Scalar> residuals) {
  require_usable(rows, model_.dim());
  pool_.split(rows.count(), [&](int worker, Share share) {
    const std::span<Scalar> own_residuals =
        residuals.empty()
            ? residuals
            : residuals.subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.count));
    add_part(rows.slice(share.first, share.count), own_residuals, by_worker_[static_cast<std::size_t>(worker)]);
  });
}

template <typename Scalar>
void MomentAccumulator<Scalar>::add_part(const Rows<Scalar>& rows, std::span<Scalar> residuals,
                                         OfOneWorker& own) const {
  MomentSums<Scalar>& sums = own.sums;
  const Index chunk = std::min(cached_rows(rows), rows.count());
  const Index rank = model_.rank();
  const Index first_probe = probe_is_model_ ? 0 : rank + 1;
  const Index width = projector_.cols();
  const Index right_first = sides_.right_first();
  const ForwardPass<Scalar> forward(model_);
  // Projections of the left and the right side of each row, and r [(other side)'Z, 1]; symmetric: both are one.
  Tall<Scalar> left(chunk, width);
  Tall<Scalar> left_weighted(chunk, probes_ + 1);
  Tall<Scalar> right(sides_.two() ? chunk : 0, width);
  Tall<Scalar> right_weighted(sides_.two() ? chunk : 0, probes_ + 1);
  Vector<Scalar> square = Vector<Scalar>::Zero(chunk);
  for (Index first = 0; first < rows.count(); first += chunk) {
    const Rows<Scalar> part = rows.slice(first, std::min(chunk, rows.count() - first));
    project(sides_.left(part), projector_.data(), width, left.data());
    if (sides_.two()) project(sides_.right(part), projector_.data() + right_first * width, width, right.data());
    if (!model_.squares.empty()) project_squares(part, model_.squares.data(), square.data());
    double p0 = 0;
    double squares = 0;
    double weights = 0;
    const auto scale = [&](const Scalar* projected, Scalar residual, Scalar* weighted) {
      for (Index c = 0; c < probes_; ++c) weighted[c] = residual * projected[first_probe + c];
      weighted[probes_] = residual;
    };
    for (Index i = 0; i < part.count(); ++i) {
      const Scalar* Lx = left.data() + i * width;
      const Scalar* Rx = sides_.two() ? right.data() + i * width : Lx;
      const Scalar linear = sides_.two() ? Lx[rank] + Rx[rank] : Lx[rank];
      const Scalar residual = part.targets()[static_cast<std::size_t>(i)] - forward.combine(Lx, Rx, linear, square[i]);
      if (!residuals.empty()) residuals[static_cast<std::size_t>(first + i)] = residual;
      const Scalar weight = part.weight(i);
      const Scalar weighted = weight * residual;
      scale(Rx, weighted, left_weighted.data() + i * (probes_ + 1));
      if (sides_.two()) scale(Lx, weighted, right_weighted.data() + i * (probes_ + 1));
      weights += weight;
      p0 += weighted;
      squares += static_cast<double>(weighted) * residual;
    }
    if (!std::isfinite(squares)) refuse_non_finite(part);
    add_back_projection(sides_.left(part), left_weighted.data(), probes_ + 1, sums.moments.data());
    if (sides_.two())
      add_back_projection(sides_.right(part), right_weighted.data(), probes_ + 1,
                          sums.moments.data() + right_first * (probes_ + 1));
    if (collect_.squares) add_back_projected_squares(part, left_weighted.data() + probes_, probes_ + 1, sums.p2.data());
    if (collect_.features) own.features.add(part);
    sums.rows += part.count();
    sums.weight += weights;
    sums.p0 += p0;
    sums.residual_squares += squares;
  }
}

template <typename Scalar>
double MomentAccumulator<Scalar>::weight() const {
  double weight = 0;
  for (const OfOneWorker& own : by_worker_) weight += own.sums.weight;
  return weight;
}

template <typename Scalar>
MomentSums<Scalar> MomentAccumulator<Scalar>::total() const {
  MomentSums<Scalar> total = by_worker_.front().sums;
  for (std::size_t worker = 1; worker < by_worker_.size(); ++worker) total += by_worker_[worker].sums;
  return total;
}

template <typename Scalar>
FeatureMoments MomentAccumulator<Scalar>::features() const {
  FeatureMoments total = by_worker_.front().features;
  for (std::size_t worker = 1; worker < by_worker_.size(); ++worker) total += by_worker_[worker].features;
  return total;
}

template struct MomentSums<float>;
template struct MomentSums<double>;
template class MomentAccumulator<float>;
template class MomentAccumulator<double>;

}  // namespace dyad
