#include "solvers/anova/variance_components.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "linalg/cholesky.h"
#include "linalg/decompositions.h"
#include "linalg/multiply.h"

namespace dyad {
namespace {

/// A direction is kept if its prior variance, summed over all rows, exceeds this share of the noise variance. Mean loss
/// of ten folds of concrete and its run time: 0.2361 and 0.41 s at 0.02, 0.2367 and 0.35 s at 0.05, 0.2375 and 0.30 s
/// at 0.1; airfoil, yacht, wine, kin40k and air change by less than 0.1% up to 0.05.
constexpr double min_visibility = 0.05;
/// Directions are selected again after this iteration of a long solve, because the variances of columns without effect
/// vanish in the first iterations (pumadyn, 32 columns: 1,248 directions become 771, and the run time halves).
constexpr Index reselection_iteration = 3;
/// Limits of the change of a variance in one iteration.
constexpr double max_ratio = 1e3;
/// Exponent of the ratio in an update. The iteration converges linearly from one side; 1.8 halves the number of
/// iterations to a given evidence.
constexpr double overrelaxation = 1.8;
/// Smallest variance of a component.
constexpr double min_theta = 1e-12;
/// The iteration ends if the log evidence changes by less than this number of nats, which is far below the differences
/// that the data can distinguish.
constexpr double evidence_tolerance_nats = 0.1;
/// Smallest noise variance as a share of y'y; bounds the condition number of A for an exact fit.
constexpr double min_noise_share = 1e-7;
/// Share of the prior covariance at the upper bound that is added to each block, so that its Cholesky factor exists.
constexpr double jitter = 1e-7;

[[noreturn]] void throw_not_positive() {
  throw std::runtime_error("the Gram matrix of the rows is not positive semidefinite; rescale the columns");
}

/// A block in the coordinates of its kept directions: gamma = E v, v ~ N(0, sum_c theta_c K_c).
struct ReducedBlock {
  Index first = 0;
  Index count = 0;
  RowMajorMatrix<double> E;
  std::vector<RowMajorMatrix<double>> covariances;  ///< K_c in the new coordinates
  RowMajorMatrix<double> root;                      ///< R with R R' = sum_c theta_c K_c
  RowMajorMatrix<double> inverse_root;
};

/// Directions of the block whose prior variance at `options.max_growth` times its variances is visible.
ReducedBlock reduce_block(const VarianceBlock& block, const RowMajorMatrix<double>& H, double s2,
                          const VarianceOptions& options) {
  const double max_growth = options.max_growth;
  ReducedBlock reduced;
  RowMajorMatrix<double> prior = RowMajorMatrix<double>::Zero(block.count, block.count);
  for (const VarianceBlock::Component& component : block.components)
    prior += std::clamp(max_growth * component.theta, 0.0, max_growth * options.max_theta) * *component.covariance;
  const auto gram = H.block(block.first, block.first, block.count, block.count);
  if (prior.trace() * gram.trace() <= min_visibility * s2) return reduced;
  // The prior may be singular; directions without prior variance keep a negligible one.
  prior.diagonal().array() += jitter * prior.trace() / static_cast<double>(std::max<Index>(1, block.count));
  RowMajorMatrix<double> inverse;
  if (!factorize_and_invert(prior, inverse)) throw_not_positive();
  prior.triangularView<Eigen::StrictlyUpper>().setZero();
  const RowMajorMatrix<double>& R = prior;
  const SymmetricEigen<double> eigen = symmetric_eigen<double>(multiply_transposed(R, multiply(gram, R)));
  Index kept = 0;
  while (kept < block.count && eigen.values[block.count - 1 - kept] > min_visibility * s2) ++kept;
  if (kept == 0) return reduced;
  const auto W = eigen.vectors.rightCols(kept);
  reduced.count = kept;
  reduced.E = multiply(R, W);
  const RowMajorMatrix<double> dual = multiply_transposed(inverse, W);
  for (const VarianceBlock::Component& component : block.components)
    reduced.covariances.push_back(outer_gram(multiply_transposed(dual, *component.factor)));
  return reduced;
}

class Iteration {
 public:
  Iteration(const CenteredSums& sums, std::vector<VarianceBlock>& blocks, double noise_variance,
            const VarianceOptions& options)
      : full_(sums), blocks_(blocks) {
    fit_.noise_variance = noise_variance;
    Index width = 0;
    for (const VarianceBlock& block : blocks) {
      reduced_.push_back(reduce_block(block, sums.H, noise_variance, options));
      reduced_.back().first = width;
      width += reduced_.back().count;
    }
    reduce_sums(width);
  }

  /// Solves for the coefficients at the current variances.
  void solve() {
    update_roots();
    build_precision();
    // Rounding errors of H, divided by the noise variance of a nearly exact fit, can exceed the smallest eigenvalue of
    // A, which is 1. The noise variance is then raised to the smallest level that the sums resolve.
    constexpr int max_raises = 12;
    for (int raise = 0; !factorize_and_invert(A_, fit_.root); ++raise) {
      if (raise == max_raises) throw_not_positive();
      fit_.noise_variance *= 10;
      build_precision();
    }
    const double s2 = fit_.noise_variance;
    const Index width = h_.size();
    Vector<double> right(width);
    for_each_reduced([&](const ReducedBlock& block) {
      right.segment(block.first, block.count) = block.root.transpose() * h_.segment(block.first, block.count) / s2;
    });
    const Vector<double> half = fit_.root.triangularView<Eigen::Lower>() * right;
    const Vector<double> u = fit_.root.transpose().triangularView<Eigen::Upper>() * half;
    v_.resize(width);
    for_each_reduced([&](const ReducedBlock& block) {
      v_.segment(block.first, block.count) = block.root * u.segment(block.first, block.count);
    });
    gradient_ = h_ - H_ * v_;
    const double explained = h_.dot(v_);
    fit_.rss = std::max(0.0, full_.yy - explained - v_.dot(gradient_));
    const double log_det = 2 * A_.diagonal().array().log().sum();
    // The mean takes one of the dimensions of the rows.
    fit_.log_evidence = -0.5 * ((full_.weight - 1) * std::log(s2) + log_det + (full_.yy - explained) / s2);
    fit_.effective_dof = static_cast<double>(width) - fit_.root.squaredNorm();
  }

  /// Updates the variances of the components.
  void update_components(double penalty_offset) {
    const double s2 = fit_.noise_variance;
    struct Ratio {
      double numerator = 0;
      double denominator = 0;
    };
    std::map<Index, Ratio> ties;
    std::vector<std::vector<Ratio>> ratios(blocks_.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const ReducedBlock& block = reduced_[b];
      ratios[b].resize(blocks_[b].components.size());
      if (block.count == 0) continue;
      const Vector<double> a = gradient_.segment(block.first, block.count) / s2;
      // R_bb = root^-T (I - B_bb) root^-1, where B_bb = T_b'T_b is a diagonal block of A^-1.
      const Index rows = h_.size() - block.first;
      const double* T = fit_.root.data() + block.first * h_.size() + block.first;
      RowMajorMatrix<double> precision = RowMajorMatrix<double>::Identity(block.count, block.count);
      gemm<double>(block.count, block.count, rows, -1, {T, h_.size(), Operation::transpose}, {T, h_.size()}, 1,
                   precision.data(), block.count);
      precision = multiply_transposed(block.inverse_root, multiply(precision, block.inverse_root));
      for (std::size_t c = 0; c < ratios[b].size(); ++c) {
        const VarianceBlock::Component& component = blocks_[b].components[c];
        Ratio& ratio = ratios[b][c];
        ratio.numerator = a.dot(block.covariances[c] * a);
        ratio.denominator = block.covariances[c].cwiseProduct(precision).sum();
        if (component.tie >= 0) {
          ties[component.tie].numerator += ratio.numerator;
          ties[component.tie].denominator += ratio.denominator;
        } else if (component.penalty > 0) {
          ratio.denominator += 2 * component.penalty / (component.theta + penalty_offset);
        }
      }
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      for (std::size_t c = 0; c < ratios[b].size(); ++c) {
        VarianceBlock::Component& component = blocks_[b].components[c];
        const Ratio& ratio = component.tie >= 0 ? ties[component.tie] : ratios[b][c];
        if (!(ratio.denominator > 0)) continue;
        const double step = std::clamp(ratio.numerator / ratio.denominator, 1 / max_ratio, max_ratio);
        component.theta = std::max(min_theta, component.theta * std::pow(step, overrelaxation));
      }
  }

  /// `scale`: variance of the target before the fit. It bounds the noise if all targets are equal.
  void update_noise(double scale) {
    const double smallest = min_noise_share * std::max(full_.yy, full_.weight * scale);
    fit_.noise_variance = std::max(fit_.rss, smallest) / std::max(1.0, full_.weight - 1 - fit_.effective_dof);
  }

  /// The result in the coordinates of the caller.
  VarianceFit take_fit() {
    fit_.gamma = Vector<double>::Zero(full_.h.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const ReducedBlock& block = reduced_[b];
      fit_.factors.push_back(block.count == 0 ? RowMajorMatrix<double>(blocks_[b].count, 0)
                                              : multiply(block.E, block.root));
      if (block.count > 0)
        fit_.gamma.segment(blocks_[b].first, blocks_[b].count) = block.E * v_.segment(block.first, block.count);
    }
    return std::move(fit_);
  }

  VarianceFit fit_;

 private:
  template <typename Visit>
  void for_each_reduced(Visit&& visit) const {
    for (const ReducedBlock& block : reduced_)
      if (block.count > 0) visit(block);
  }

  /// H = E'H E and h = E'h.
  void reduce_sums(Index width) {
    H_.resize(width, width);
    h_.resize(width);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const ReducedBlock& right = reduced_[b];
      if (right.count == 0) continue;
      h_.segment(right.first, right.count) = right.E.transpose() * full_.h.segment(blocks_[b].first, blocks_[b].count);
      const Index rows = blocks_[b].first + blocks_[b].count;
      const RowMajorMatrix<double> half = multiply(full_.H.block(0, blocks_[b].first, rows, blocks_[b].count), right.E);
      for (std::size_t a = 0; a <= b; ++a) {
        const ReducedBlock& left = reduced_[a];
        if (left.count == 0) continue;
        const RowMajorMatrix<double> block =
            multiply_transposed(left.E, half.middleRows(blocks_[a].first, blocks_[a].count));
        H_.block(left.first, right.first, left.count, right.count) = block;
        H_.block(right.first, left.first, right.count, left.count) = block.transpose();
      }
    }
  }

  void update_roots() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      ReducedBlock& block = reduced_[b];
      if (block.count == 0) continue;
      block.root = jitter * RowMajorMatrix<double>::Identity(block.count, block.count);
      for (std::size_t c = 0; c < block.covariances.size(); ++c)
        block.root += blocks_[b].components[c].theta * block.covariances[c];
      if (!factorize_and_invert(block.root, block.inverse_root)) throw_not_positive();
      block.root.triangularView<Eigen::StrictlyUpper>().setZero();
    }
  }

  /// A = I + root' H root / s2, lower triangle.
  void build_precision() {
    const Index width = h_.size();
    A_.resize(width, width);
    for_each_reduced([&](const ReducedBlock& right) {
      // rows below the block only
      const Index rows = width - right.first;
      RowMajorMatrix<double> half(rows, right.count);
      gemm<double>(rows, right.count, right.count, 1 / fit_.noise_variance,
                   {H_.data() + right.first * width + right.first, width}, {right.root.data(), right.count}, 0,
                   half.data(), right.count);
      for_each_reduced([&](const ReducedBlock& left) {
        if (left.first < right.first) return;
        gemm<double>(left.count, right.count, left.count, 1, {left.root.data(), left.count, Operation::transpose},
                     {half.data() + (left.first - right.first) * right.count, right.count}, 0,
                     A_.data() + left.first * width + right.first, width);
      });
    });
    A_.diagonal().array() += 1;
  }

  const CenteredSums& full_;
  std::vector<VarianceBlock>& blocks_;
  std::vector<ReducedBlock> reduced_;
  RowMajorMatrix<double> H_;
  Vector<double> h_;
  RowMajorMatrix<double> A_;
  Vector<double> v_;
  Vector<double> gradient_;  ///< h - H v
};

}  // namespace

VarianceFit estimate_variances(const CenteredSums& sums, std::vector<VarianceBlock>& blocks, double noise_variance,
                               const VarianceOptions& options) {
  auto iteration = std::make_unique<Iteration>(sums, blocks, noise_variance, options);
  double last = 0;
  for (Index i = 1;; ++i) {
    iteration->solve();
    iteration->fit_.iterations = i;
    const bool has_converged = i > 1 && std::abs(iteration->fit_.log_evidence - last) < evidence_tolerance_nats;
    if (has_converged || i >= options.max_iterations || (options.interrupted && options.interrupted())) break;
    last = iteration->fit_.log_evidence;
    iteration->update_components(options.penalty_offset);
    if (!options.is_noise_fixed) iteration->update_noise(options.max_theta);
    if (i == reselection_iteration && options.max_iterations > 2 * reselection_iteration)
      iteration = std::make_unique<Iteration>(sums, blocks, iteration->fit_.noise_variance, options);
  }
  return iteration->take_fit();
}

}  // namespace dyad
