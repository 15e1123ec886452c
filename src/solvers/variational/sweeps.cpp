#include "solvers/variational/sweeps.h"

#include <algorithm>
#include <utility>

namespace dyad {
namespace {

/// Rounds up to a multiple of the number of elements of a SIMD vector.
Index pad(Index count) {
  constexpr Index simd_count = FeatureEquations::Simd::count;
  return (count + simd_count - 1) / simd_count * simd_count;
}

}  // namespace

template <typename Scalar>
VariationalSweeps<Scalar>::VariationalSweeps(const Rows<Scalar>& rows, LikelihoodPointer likelihood,
                                             const Posterior<Scalar>& start, ThreadPool& pool)
    : likelihood_(std::move(likelihood)),
      pool_(pool),
      rows_(rows),
      rank_(start.means.rank()),
      width_(pad(rank_)),
      stride_(pad(width_ + 2)),
      diagonal_(start.means.diagonal),
      signs_(at(width_)),
      records_(at((rows_.dim + 1) * 2 * stride_)),
      priors_(at(stride_), 1.0),
      noise_precision_(likelihood_->has_noise_variance() ? 1 / start.noise_variance : 1),
      residuals_(at(rows_.count)) {
  row_precisions_.resize(at(rows_.count), likelihood_->has_noise_variance() && rows_.weights_are_ones);
  if (likelihood_->needs_bound_points()) bound_points_.resize(at(rows_.count));
  if (rows_.has_long_rows) row_sums_.resize(at(rows_.count * 3 * width_));
  for (Index i = 0; i < rows_.count; ++i) total_weight_ += rows_.weight(i);
  for (Index j = 0; j < rows_.dim; ++j) active_count_ += rows_.occurrence_count(j) > 0 ? 1 : 0;
  load(start);
  update_priors();
}

template <typename Scalar>
void VariationalSweeps<Scalar>::load(const Posterior<Scalar>& start) {
  has_weights_ = start.variances.weights.cwiseAbs().sum() > 0;
  for (Index c = 0; c < rank_; ++c) parameters_.push_back(c);
  if (has_weights_) parameters_.push_back(weight_index());
  if (diagonal_ == Diagonal::free) parameters_.push_back(square_index());
  intercept_ = static_cast<double>(start.means.intercept);
  intercept_variance_ = static_cast<double>(start.variances.intercept);
  for (Index c = 0; c < rank_; ++c) signs_[at(c)] = static_cast<double>(start.means.signs[c]);
  const auto copy = [&](const SignedFactors<Scalar>& from, auto&& offset_of) {
    for (Index j = 0; j < rows_.dim; ++j) {
      double* feature = records_.data() + j * 2 * stride_;
      for (Index c = 0; c < rank_; ++c) feature[offset_of(c)] = static_cast<double>(from.A(j, c));
      if (has_weights_) feature[offset_of(weight_index())] = static_cast<double>(from.weights[j]);
      if (diagonal_ == Diagonal::free) feature[offset_of(square_index())] = static_cast<double>(from.squares[j]);
    }
  };
  copy(start.means, [&](Index parameter) { return mean_offset(parameter); });
  copy(start.variances, [&](Index parameter) { return variance_offset(parameter); });
}

template <typename Scalar>
double VariationalSweeps<Scalar>::estimate_bytes(double rows, double entries_per_row, Index rank) {
  const bool has_long_rows = entries_per_row > 2;
  // Entries are stored by row and by feature. A row has a residual, a precision, a bound point, an offset, an index and
  // the bits of the coloring; a long row also has `row_sums_`.
  const double per_entry = 2 * static_cast<double>(sizeof(Scalar) + sizeof(std::int32_t));
  const double per_row = 6 + (has_long_rows ? 3 * static_cast<double>(rank) : 0);
  return rows * (entries_per_row * per_entry + static_cast<double>(sizeof(double)) * per_row);
}

template <typename Scalar>
void VariationalSweeps<Scalar>::sweep() {
  update_residuals();
  update_intercept();
  for (std::size_t c = 0; c < color_class_count(); ++c) update_features(c);
  update_priors();
}

/// Empirical Bayes: tau = number of features / sum_j E[theta_j^2].
template <typename Scalar>
void VariationalSweeps<Scalar>::update_priors() {
  std::vector<double> squares(at(stride_));
  for (Index j = 0; j < rows_.dim; ++j) {
    if (rows_.occurrence_count(j) == 0) continue;
    for (const Index a : parameters_) {
      const double mean = record(j)[mean_offset(a)];
      squares[at(a)] += mean * mean + record(j)[variance_offset(a)];
    }
  }
  for (Index a = 0; a < stride_; ++a)
    if (squares[at(a)] > 0) priors_[at(a)] = static_cast<double>(active_count_) / squares[at(a)];
}

template <typename Scalar>
std::vector<double> VariationalSweeps<Scalar>::prior_precisions() const {
  std::vector<double> result(priors_.begin(), priors_.begin() + rank_);
  result.push_back(priors_[at(weight_index())]);
  result.push_back(priors_[at(square_index())]);
  return result;
}

template <typename Scalar>
Posterior<Scalar> VariationalSweeps<Scalar>::posterior() const {
  const auto to_parameters = [&](double intercept, auto&& offset_of) {
    SignedFactors<Scalar> parameters;
    parameters.diagonal = diagonal_;
    parameters.intercept = static_cast<Scalar>(intercept);
    parameters.weights.resize(rows_.dim);
    parameters.squares.resize(diagonal_ == Diagonal::free ? rows_.dim : 0);
    parameters.A.resize(rows_.dim, rank_);
    parameters.signs.resize(rank_);
    for (Index c = 0; c < rank_; ++c) parameters.signs[c] = static_cast<Scalar>(signs_[at(c)]);
    for (Index j = 0; j < rows_.dim; ++j) {
      const double* feature = record(j);
      for (Index c = 0; c < rank_; ++c) parameters.A(j, c) = static_cast<Scalar>(feature[offset_of(c)]);
      parameters.weights[j] = static_cast<Scalar>(feature[offset_of(weight_index())]);
      if (diagonal_ == Diagonal::free) parameters.squares[j] = static_cast<Scalar>(feature[offset_of(square_index())]);
    }
    return parameters;
  };
  return {to_parameters(intercept_, [&](Index parameter) { return mean_offset(parameter); }),
          to_parameters(intercept_variance_, [&](Index parameter) { return variance_offset(parameter); }),
          noise_variance()};
}

// update_residuals, update_intercept and bound are instantiated in row_updates.cpp, update_features in
// feature_updates.cpp.
template class VariationalSweeps<float>;
template class VariationalSweeps<double>;

}  // namespace dyad
