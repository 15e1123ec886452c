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
void require_valid_rows(const Rows<Scalar>& rows, Index dim) {
  if (rows.dim() != dim)
    throw std::invalid_argument("the solver has " + std::to_string(dim) + " features, the rows have " +
                                std::to_string(rows.dim()));
  if (!rows.has_targets() && rows.count() > 0)
    throw std::invalid_argument("the rows have no targets; rows for training need one target each");
}

/// Throws std::invalid_argument for the first target or feature that is not finite. Called if a sum is not finite;
/// returns if the sum overflowed although all data is finite.
template <typename Scalar>
void throw_if_not_finite(const Rows<Scalar>& rows) {
  const auto fail = [](Index i, const std::string& what) {
    throw std::invalid_argument("row " + std::to_string(i) + " of the block: " + what +
                                " is NaN or infinite, expected a finite number");
  };
  for (Index i = 0; i < rows.count(); ++i) {
    if (!std::isfinite(rows.targets()[static_cast<std::size_t>(i)])) fail(i, "the target");
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (!std::isfinite(x)) fail(i, "feature " + std::to_string(j));
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
void MomentSums<Scalar>::grow(const FeatureGrowth& growth) {
  moments = growth.insert_zero_rows(moments);
  if (p2.size() > 0) p2 = growth.insert_zero_rows(p2);
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
                                             const Eigen::Ref<const RowMajorMatrix<Scalar>>& probe,
                                             OptionalSums collect)
    : pool_(pool),
      model_(model),
      sides_(model),
      probes_(probe.cols()),
      collect_(collect),
      probe_is_factors_(probe.data() == model.factors.data()),
      projector_(model.dim(), model.rank() + 1 + (probe_is_factors_ ? 0 : probes_)),
      worker_sums_(static_cast<std::size_t>(pool.count()),
                   WorkerSums{MomentSums<Scalar>(model.dim(), probes_, collect.squares),
                              FeatureMoments(collect.features ? model.dim() : 0)}) {
  fill_projector(probe);
}

template <typename Scalar>
void MomentAccumulator<Scalar>::fill_projector(const Eigen::Ref<const RowMajorMatrix<Scalar>>& probe) {
  projector_.leftCols(model_.rank()) = as_row_major(model_.factors, model_.dim(), model_.rank());
  projector_.col(model_.rank()) = as_vector(model_.weights);
  if (!probe_is_factors_) projector_.rightCols(probes_) = probe;
}

template <typename Scalar>
void MomentAccumulator<Scalar>::grow(const FeatureGrowth& growth) {
  sides_ = Sides(model_);
  projector_.resize(model_.dim(), projector_.cols());
  fill_projector(as_row_major(model_.factors, model_.dim(), model_.rank()));
  for (WorkerSums& worker : worker_sums_) {
    worker.sums.grow(growth);
    if (collect_.features) worker.features.grow(growth);
  }
}

template <typename Scalar>
void MomentAccumulator<Scalar>::restore(const MomentSums<Scalar>& sums, const FeatureMoments& features) {
  worker_sums_.front().sums = sums;
  worker_sums_.front().features = features;
}

template <typename Scalar>
void MomentAccumulator<Scalar>::add(const Rows<Scalar>& rows, std::span<Scalar> residuals) {
  add_with_targets(rows, rows.targets(), residuals);
}

template <typename Scalar>
void MomentAccumulator<Scalar>::add_with_targets(const Rows<Scalar>& rows, std::span<const Scalar> targets,
                                                 std::span<Scalar> residuals) {
  require_valid_rows(rows, model_.dim());
  pool_.split(rows.count(), [&](int worker, IndexRange range) {
    const auto first = static_cast<std::size_t>(range.first);
    const auto count = static_cast<std::size_t>(range.count);
    add_slice(rows.slice(range.first, range.count), targets.subspan(first, count),
              residuals.empty() ? residuals : residuals.subspan(first, count),
              worker_sums_[static_cast<std::size_t>(worker)]);
  });
}

template <typename Scalar>
void MomentAccumulator<Scalar>::add_slice(const Rows<Scalar>& rows, std::span<const Scalar> targets,
                                          std::span<Scalar> residuals, WorkerSums& worker) const {
  MomentSums<Scalar>& sums = worker.sums;
  const Index chunk = std::min(rows_per_cache_block(rows), rows.count());
  const Index rank = model_.rank();
  const Index first_probe = probe_is_factors_ ? 0 : rank + 1;
  const Index width = projector_.cols();
  const Index right_first = sides_.right_first();
  const ForwardPass<Scalar> forward(model_);
  // Projections of the left and the right side of each row, and r [(other side)'Z, 1]. Symmetric: the left arrays serve
  // both sides.
  RowMajorMatrix<Scalar> left(chunk, width);
  RowMajorMatrix<Scalar> left_weighted(chunk, probes_ + 1);
  RowMajorMatrix<Scalar> right(sides_.is_bilinear() ? chunk : 0, width);
  RowMajorMatrix<Scalar> right_weighted(sides_.is_bilinear() ? chunk : 0, probes_ + 1);
  Vector<Scalar> square_terms = Vector<Scalar>::Zero(chunk);
  for (Index first = 0; first < rows.count(); first += chunk) {
    const Rows<Scalar> block = rows.slice(first, std::min(chunk, rows.count() - first));
    project(sides_.left(block), projector_.data(), width, left.data());
    if (sides_.is_bilinear())
      project(sides_.right(block), projector_.data() + right_first * width, width, right.data());
    if (!model_.squares.empty()) project_squares(block, model_.squares.data(), square_terms.data());
    double p0 = 0;
    double squares = 0;
    double weights = 0;
    const auto scale = [&](const Scalar* projected, Scalar residual, Scalar* weighted) {
      for (Index c = 0; c < probes_; ++c) weighted[c] = residual * projected[first_probe + c];
      weighted[probes_] = residual;
    };
    for (Index i = 0; i < block.count(); ++i) {
      const Scalar* Lx = left.data() + i * width;
      const Scalar* Rx = sides_.is_bilinear() ? right.data() + i * width : Lx;
      const Scalar linear = sides_.is_bilinear() ? Lx[rank] + Rx[rank] : Lx[rank];
      const Scalar residual =
          targets[static_cast<std::size_t>(first + i)] - forward.combine(Lx, Rx, linear, square_terms[i]);
      if (!residuals.empty()) residuals[static_cast<std::size_t>(first + i)] = residual;
      const Scalar weight = block.weight(i);
      const Scalar weighted = weight * residual;
      scale(Rx, weighted, left_weighted.data() + i * (probes_ + 1));
      if (sides_.is_bilinear()) scale(Lx, weighted, right_weighted.data() + i * (probes_ + 1));
      weights += weight;
      p0 += weighted;
      squares += static_cast<double>(weighted) * residual;
    }
    if (!std::isfinite(squares)) throw_if_not_finite(block);
    add_back_projection(sides_.left(block), left_weighted.data(), probes_ + 1, sums.moments.data());
    if (sides_.is_bilinear())
      add_back_projection(sides_.right(block), right_weighted.data(), probes_ + 1,
                          sums.moments.data() + right_first * (probes_ + 1));
    if (collect_.squares)
      add_back_projected_squares(block, left_weighted.data() + probes_, probes_ + 1, sums.p2.data());
    if (collect_.features) worker.features.add(block);
    sums.rows += block.count();
    sums.weight += weights;
    sums.p0 += p0;
    sums.residual_squares += squares;
  }
}

template <typename Scalar>
double MomentAccumulator<Scalar>::weight() const {
  double weight = 0;
  for (const WorkerSums& worker : worker_sums_) weight += worker.sums.weight;
  return weight;
}

template <typename Scalar>
MomentSums<Scalar> MomentAccumulator<Scalar>::total() const {
  MomentSums<Scalar> total = worker_sums_.front().sums;
  for (std::size_t worker = 1; worker < worker_sums_.size(); ++worker) total += worker_sums_[worker].sums;
  return total;
}

template <typename Scalar>
FeatureMoments MomentAccumulator<Scalar>::features() const {
  FeatureMoments total = worker_sums_.front().features;
  for (std::size_t worker = 1; worker < worker_sums_.size(); ++worker) total += worker_sums_[worker].features;
  return total;
}

template struct MomentSums<float>;
template struct MomentSums<double>;
template class MomentAccumulator<float>;
template class MomentAccumulator<double>;

}  // namespace dyad
