#pragma once

#include <vector>

#include <dyad/rows.h>

#include "base/cache_aligned.h"
#include "linalg/simd.h"

namespace dyad {

/// Index as an index of std::vector.
inline std::size_t as_size(Index i) { return static_cast<std::size_t>(i); }

/// SIMD vector of the sampler. Rows and parameters are stored in single precision: rounding errors are far below the
/// standard deviations of the draws. Sums over more than a block of rows are in double precision.
using SamplerSimd = SimdVector<float, 8>;

/// Parameters of the features in one sample: the factors v_j, padded to `width`, the weight w_j and the coefficient u_j
/// of the square.
class FeatureParameters {
 public:
  FeatureParameters(Index features, Index rank)
      : rank_(rank),
        width_((rank + SamplerSimd::count - 1) / SamplerSimd::count * SamplerSimd::count),
        stride_(width_ + 2),
        numbers_(static_cast<std::size_t>(features * stride_)) {}

  [[nodiscard]] Index rank() const { return rank_; }
  [[nodiscard]] Index width() const { return width_; }
  [[nodiscard]] float* factors(Index j) { return numbers_.data() + j * stride_; }
  [[nodiscard]] const float* factors(Index j) const { return numbers_.data() + j * stride_; }
  [[nodiscard]] float& weight(Index j) { return factors(j)[width_]; }
  [[nodiscard]] float weight(Index j) const { return factors(j)[width_]; }
  [[nodiscard]] float& square(Index j) { return factors(j)[width_ + 1]; }
  [[nodiscard]] float square(Index j) const { return factors(j)[width_ + 1]; }
  /// Parameter at a place: the factors, the weight, the square.
  [[nodiscard]] float& at(Index j, Index place) { return factors(j)[place < rank_ ? place : width_ + place - rank_]; }
  [[nodiscard]] float at(Index j, Index place) const {
    return factors(j)[place < rank_ ? place : width_ + place - rank_];
  }
  /// Number of places.
  [[nodiscard]] Index places() const { return rank_ + 2; }

 private:
  Index rank_;
  Index width_;
  Index stride_;
  CacheAlignedVector<float> numbers_;
};

/// State of the rows in one sample: q = sum_j x_j v_j, for each side of a bilinear model, the residual e = z - f, and
/// the precision omega relative to the noise precision. The numbers of a row are contiguous.
class RowStates {
 public:
  RowStates(Index rows, Index width, Index sides)
      : residual_(sides * width),
        stride_((sides * width + 2 + SamplerSimd::count - 1) / SamplerSimd::count * SamplerSimd::count),
        numbers_(static_cast<std::size_t>(rows * stride_)) {}

  [[nodiscard]] float* row(Index i) { return numbers_.data() + i * stride_; }
  [[nodiscard]] const float* row(Index i) const { return numbers_.data() + i * stride_; }
  [[nodiscard]] Index residual_offset() const { return residual_; }
  [[nodiscard]] Index precision_offset() const { return residual_ + 1; }
  [[nodiscard]] float& residual(Index i) { return row(i)[residual_]; }
  [[nodiscard]] float residual(Index i) const { return row(i)[residual_]; }
  [[nodiscard]] float& precision(Index i) { return row(i)[residual_ + 1]; }
  [[nodiscard]] float precision(Index i) const { return row(i)[residual_ + 1]; }

  /// Bytes per row.
  [[nodiscard]] static double bytes_per_row(Index rank, Index sides) {
    return static_cast<double>(sides * (rank + SamplerSimd::count) + SamplerSimd::count) * sizeof(float);
  }

 private:
  Index residual_;
  Index stride_;
  CacheAlignedVector<float> numbers_;
};

}  // namespace dyad
