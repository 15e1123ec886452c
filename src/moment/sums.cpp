#include "moment/sums.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "model/prediction.h"
#include "rows/products.h"

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
    const Scalar* first = rows.is_sparse() ? rows.values() + rows.offset(i) : rows.row(i);
    const Index entries = rows.is_sparse() ? rows.offset(i + 1) - rows.offset(i) : rows.dim();
    for (Index e = 0; e < entries; ++e)
      if (!std::isfinite(first[e])) refuse(i, "entry " + std::to_string(e));
  }
}

}  // namespace

template <typename Scalar>
bool MomentSums<Scalar>::is_finite() const {
  return std::isfinite(p0) && std::isfinite(residual_squares) && moments.allFinite();
}

template <typename Scalar>
MomentSums<Scalar>& MomentSums<Scalar>::operator+=(const MomentSums& other) {
  rows += other.rows;
  p0 += other.p0;
  residual_squares += other.residual_squares;
  moments += other.moments;
  return *this;
}

template <typename Scalar>
Tall<Scalar> interaction_change(const MomentSums<Scalar>& sums, const Eigen::Ref<const Tall<Scalar>>& Z) {
  return (sums.G() - static_cast<Scalar>(sums.p0) * Z) / static_cast<Scalar>(2 * sums.rows);
}

template <typename Scalar>
MomentAccumulator<Scalar>::MomentAccumulator(Workers& workers, const Model<Scalar>& model,
                                             const Eigen::Ref<const Tall<Scalar>>& probe)
    : workers_(workers),
      model_(model),
      probes_(probe.cols()),
      probe_is_model_(probe.data() == model.factors.data()),
      projector_(model.dim(), model.rank() + 1 + (probe_is_model_ ? 0 : probes_)),
      by_worker_(static_cast<std::size_t>(workers.count()), MomentSums<Scalar>(model.dim(), probes_)) {
  projector_.leftCols(model.rank()) = as_tall(model.factors, model.dim(), model.rank());
  projector_.col(model.rank()) = as_vector(model.weights);
  if (!probe_is_model_) projector_.rightCols(probes_) = probe;
}

template <typename Scalar>
void MomentAccumulator<Scalar>::add(const Rows<Scalar>& rows) {
  require_usable(rows, model_.dim());
  workers_.split(rows.count(), [&](int worker, Share share) {
    add_part(rows.slice(share.first, share.count), by_worker_[static_cast<std::size_t>(worker)]);
  });
}

template <typename Scalar>
void MomentAccumulator<Scalar>::add_part(const Rows<Scalar>& rows, MomentSums<Scalar>& sums) const {
  const Index chunk = std::min(cached_rows(rows), rows.count());
  const Index rank = model_.rank();
  const Index first_probe = probe_is_model_ ? 0 : rank + 1;
  Tall<Scalar> projected(chunk, projector_.cols());
  Tall<Scalar> weighted(chunk, probes_ + 1);  // r [x'Z, 1], row by row
  for (Index first = 0; first < rows.count(); first += chunk) {
    const Rows<Scalar> part = rows.slice(first, std::min(chunk, rows.count() - first));
    project(part, projector_.data(), projector_.cols(), projected.data());
    double p0 = 0;
    double squares = 0;
    for (Index i = 0; i < part.count(); ++i) {
      const Scalar* Px = &projected(i, 0);
      const Scalar residual = part.targets()[static_cast<std::size_t>(i)] - predict_row(model_, Px, Px[rank]);
      Scalar* scaled = &weighted(i, 0);
      for (Index c = 0; c < probes_; ++c) scaled[c] = residual * Px[first_probe + c];
      scaled[probes_] = residual;
      p0 += residual;
      squares += static_cast<double>(residual) * residual;
    }
    if (!std::isfinite(squares)) refuse_non_finite(part);
    add_back_projection(part, weighted.data(), weighted.cols(), sums.moments.data());
    sums.rows += part.count();
    sums.p0 += p0;
    sums.residual_squares += squares;
  }
}

template <typename Scalar>
MomentSums<Scalar> MomentAccumulator<Scalar>::total() const {
  MomentSums<Scalar> total = by_worker_.front();
  for (std::size_t worker = 1; worker < by_worker_.size(); ++worker) total += by_worker_[worker];
  return total;
}

template struct MomentSums<float>;
template struct MomentSums<double>;
template Tall<float> interaction_change(const MomentSums<float>&, const Eigen::Ref<const Tall<float>>&);
template Tall<double> interaction_change(const MomentSums<double>&, const Eigen::Ref<const Tall<double>>&);
template class MomentAccumulator<float>;
template class MomentAccumulator<double>;

}  // namespace dyad
