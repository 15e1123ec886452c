#include "solvers/sampling/sample_average.h"

#include <algorithm>
#include <cmath>

#include "linalg/decompositions.h"
#include "linalg/gemm.h"
#include "model/low_rank.h"

namespace dyad {
namespace {

/// Digamma and trigamma functions by recurrence and asymptotic series (Abramowitz and Stegun 6.3.18 and 6.4.12).
/// Arguments are positive. The first omitted terms are below 1e-8.
constexpr double series_start = 8;

double digamma(double x) {
  double result = 0;
  for (; x < series_start; x += 1) result -= 1 / x;
  const double r = 1 / (x * x);
  return result + std::log(x) - 1 / (2 * x) - r * (1.0 / 12 - r * (1.0 / 120 - r / 252));
}

double trigamma(double x) {
  double result = 0;
  for (; x < series_start; x += 1) result += 1 / (x * x);
  const double r = 1 / (x * x);
  return result + 1 / x + r / 2 + r / x * (1.0 / 6 - r * (1.0 / 30 - r / 42));
}

}  // namespace

SampleAverage::SampleAverage(const GibbsSampler& sampler, Index size)
    : shape_(sampler.options().shape), size_(std::max(size, shape_.rank)), groups_(sampler.groups().count) {
  const Index dim = sampler.columns().dim();
  const Index rows = dim + groups_;
  for (Index j = 0; j < rows; ++j)
    scales_.push_back(j < dim ? std::sqrt(static_cast<float>(sampler.columns().column(j).count()) + 1.0F) : 1.0F);
  F_.setZero(rows, 2 * size_);
  weights_.setZero(rows);
  squares_.setZero(rows);
  log_factors_.setZero(rows);
  squared_log_factors_.setZero(rows);
}

void SampleAverage::add(const GibbsSampler& sampler) {
  const Index rank = shape_.rank;
  const Index dim = sampler.columns().dim();
  const GibbsSampler::Sample& sample = sampler.sample();
  if (used_columns_ + rank > F_.cols()) cut();
  for (Index j = 0; j < F_.rows(); ++j) {
    const double* means = j < dim ? nullptr : sample.hyperpriors.means(j - dim);
    float* columns = F_.data() + j * F_.cols() + used_columns_;
    const auto scale = static_cast<double>(scales_[as_size(j)]);
    for (Index c = 0; c < rank; ++c) {
      const double value = means == nullptr ? static_cast<double>(sample.parameters.at(j, c)) : means[c];
      columns[c] = static_cast<float>(scale * value);
    }
    weights_[j] += means == nullptr ? static_cast<double>(sample.parameters.weight(j)) : means[rank];
    squares_[j] += means == nullptr ? static_cast<double>(sample.parameters.square(j)) : means[rank + 1];
    double log_factor = 0;
    double variance = 0;
    if (j >= dim) {
      // -log s of s ~ Gamma(nu/2, nu/2)
      const double half = sample.noise.shape(j - dim) / 2;
      log_factor = std::log(half) - digamma(half);
      variance = trigamma(half);
    } else if (sampler.has_noise(j)) {
      log_factor = -std::log(sample.noise.multiplier(j));
    }
    log_factors_[j] += log_factor;
    squared_log_factors_[j] += log_factor * log_factor + variance;
  }
  used_columns_ += rank;
  is_cut_ = false;
  intercept_ += sample.intercept;
  log_noise_ -= std::log(sample.noise_precision);
  ++samples_;
}

/// Replaces F by F E, where the columns of E are the leading eigenvectors of F'F. (F E)(F E)' is the best approximation
/// of F F' with `size` columns.
void SampleAverage::cut() {
  if (is_cut_) return;
  const Index kept = std::min(size_, used_columns_);
  const Index stride = F_.cols();
  Matrix<float> gram(used_columns_, used_columns_);
  gemm<float>(used_columns_, used_columns_, F_.rows(), 1, {F_.data(), stride, Operation::transpose},
              {F_.data(), stride, Operation::identity}, 0, gram.data(), used_columns_);
  const RowMajorMatrix<float> leading =
      symmetric_eigen<double>(gram.cast<double>()).vectors.rightCols(kept).cast<float>();
  constexpr Index block_rows = 4096;  // memory of the product
  RowMajorMatrix<float> product(std::min(block_rows, F_.rows()), kept);
  for (Index first = 0; first < F_.rows(); first += block_rows) {
    const Index count = std::min(block_rows, F_.rows() - first);
    gemm<float>(count, kept, used_columns_, 1, {F_.data() + first * stride, stride, Operation::identity},
                {leading.data(), kept, Operation::identity}, 0, product.data(), kept);
    F_.block(first, 0, count, kept) = product.topRows(count);
  }
  used_columns_ = kept;
  is_cut_ = true;
}

Index SampleAverage::columns() { return std::min(size_, used_columns_); }

SignedFactors<double> SampleAverage::model(Index rank) {
  cut();
  const auto count = static_cast<double>(samples_);
  const bool is_bilinear = shape_.is_bilinear();
  const Index rows = is_bilinear ? shape_.dim : F_.rows();
  SignedFactors<double> result;
  result.left_dim = shape_.left_dim;
  result.diagonal = shape_.diagonal;
  result.intercept = intercept_ / count;
  result.weights = weights_.head(rows) / count;
  if (shape_.diagonal == Diagonal::free) result.squares = squares_.head(rows) / count;
  const Index kept = std::min({rank, used_columns_, is_bilinear ? shape_.max_rank() : rank});
  // V'V / 2 is the coefficient M_ij of a symmetric model, in which a pair occurs twice.
  const double scale = (is_bilinear ? 1 : 0.5) / count;
  const Eigen::Map<const Vector<float>> scales(scales_.data(), rows);
  if (is_bilinear) {
    const Matrix<double> C = F_.block(0, 0, rows, used_columns_).cast<double>();
    const LowRankFactorization<double> factors =
        truncate_to_rank<double>(Sides(rows, shape_.left_dim), C, scale * Matrix<double>::Identity(C.cols(), C.cols()),
                                 kept, EigenvalueSelection::largest);
    result.A = factors.vectors * factors.values.cwiseSqrt().asDiagonal();
  } else {
    // After a cut, the columns are orthogonal in ascending order of their norms.
    result.A = std::sqrt(scale) * F_.block(0, used_columns_ - kept, rows, kept).cast<double>();
  }
  result.A.array().colwise() /= scales.cast<double>().array();
  result.signs = Vector<double>::Ones(kept);
  return result;
}

SampleAverage::Noise SampleAverage::noise() const {
  const auto count = static_cast<double>(samples_);
  Noise result;
  result.log_variance = log_noise_ / count;
  for (Index j = 0; j < log_factors_.size(); ++j) {
    const double mean = log_factors_[j] / count;
    result.log_factors.push_back(mean);
    result.deviations.push_back(std::sqrt(std::max(0.0, squared_log_factors_[j] / count - mean * mean)));
  }
  return result;
}

}  // namespace dyad
