#include "recovery/planted_problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

void require(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument(message);
}

std::string got_text(double value) { return fmt::format(", got {:g}", value); }

/// Eigenvalue i of M*: magnitudes decrease linearly from 1 to 1/condition, and signs alternate if they are mixed.
double planted_eigenvalue(const PlantedOptions& options, Index i) {
  const double step =
      options.rank == 1 ? 0
                        : (1 - 1 / options.condition) * static_cast<double>(i) / static_cast<double>(options.rank - 1);
  const bool is_negative = !options.is_bilinear() && options.signs == Signs::mixed && i % 2 == 1;
  return is_negative ? step - 1 : 1 - step;
}

/// Distribution of min(z, cap) for z ~ N(0, 1), with its mean and standard deviation:
///
///     E[x] = cap Q - phi,   E[x^2] = (1 - Q) - cap phi + cap^2 Q,   Q = P(z > cap),   phi = density of z at cap
struct CappedNormal {
  /// Definition of FeatureDistribution::skewed. 46% of the probability lie above the cap, so the skewness is large.
  static constexpr double cap = 0.1;
  double mean;
  double deviation;

  CappedNormal() {
    const double upper_mass = 0.5 * std::erfc(cap / std::numbers::sqrt2);
    const double density = std::exp(-0.5 * cap * cap) / std::sqrt(2 * std::numbers::pi);
    mean = cap * upper_mass - density;
    const double second_moment = (1 - upper_mass) - cap * density + cap * cap * upper_mass;
    deviation = std::sqrt(second_moment - mean * mean);
  }
  [[nodiscard]] double standardize(double normal) const { return (std::min(normal, cap) - mean) / deviation; }
};

}  // namespace

ModelShape PlantedOptions::shape() const {
  ModelShape result = ModelShape::of(kind);
  result.dim = total_dim();
  result.left_dim = left_dim();
  result.rank = rank;
  result.intercept = intercept.has_value();
  result.positive = result.positive || signs == Signs::positive;
  result.diagonal = diagonal;
  return result;
}

void PlantedOptions::validate() const {
  constexpr Index max_dim = std::numeric_limits<std::int32_t>::max();  // features are stored as 32-bit indices
  constexpr double max_factor_entries = 1e15;                          // 8e15 bytes, beyond the memory of any machine
  require(dim >= 1 && dim <= max_dim, "dim must lie in [1, 2^31), got " + std::to_string(dim));
  if (is_bilinear())
    require(right_dim >= 1 && right_dim <= max_dim,
            "a bilinear problem needs two dims, D1xD2, each in [1, 2^31), got " + std::to_string(dim) + "x" +
                std::to_string(right_dim));
  else
    require(right_dim == 0, "only a bilinear problem has two dims; right_dim must be 0");
  const Index max_rank = is_bilinear() ? std::min(dim, right_dim) : dim;
  require(rank >= 1 && rank <= max_rank,
          "rank must lie in [1, dim] = [1, " + std::to_string(max_rank) + "], got " + std::to_string(rank));
  require(kind != Kind::phase || rank == 1, "phase retrieval has rank 1, got " + std::to_string(rank));
  require(total_dim() <= max_dim && static_cast<double>(rank) * static_cast<double>(total_dim()) < max_factor_entries,
          "dim times rank is too large: expected fewer than 1e15 factor entries and fewer than 2^31 features in total");
  require(!is_bilinear() || (diagonal == Diagonal::tied && signs == Signs::mixed),
          "a bilinear problem has no diagonal and no signs to set; use diagonal tied and signs mixed");
  require(
      diagonal != Diagonal::free || features != FeatureDistribution::rademacher,
      "the squares of two-valued features are constant, so their coefficients cannot be estimated; use diagonal zero");
  require(diagonal == Diagonal::tied || (kind != Kind::phase && residual == 0),
          "diagonal zero and free are defined for the kinds gfm and sensing, with residual 0");
  require(condition >= 1 && std::isfinite(condition), "condition must be at least 1 and finite" + got_text(condition));
  require(noise >= 0 && std::isfinite(noise),
          "noise, a standard deviation, must be at least 0 and finite" + got_text(noise));
  require(residual >= 0 && residual * condition < 1,
          "residual must lie in [0, 1/condition), below the smallest planted eigenvalue" + got_text(residual));
  require(outliers >= 0 && outliers < 0.5,
          "outliers must lie in [0, 0.5), as a share of the rows" + got_text(outliers));
  require(!intercept || std::isfinite(*intercept), "intercept must be finite");
}

PlantedProblem::PlantedProblem(const PlantedOptions& options)
    : options_((options.validate(), options)),
      truth_(options.total_dim(), options.rank, options.left_dim()),
      right_first_(truth_.left_dim) {
  Random random(options.seed, truth_stream);
  const Index d = options.total_dim();
  const Index k = options.rank;
  auto U = as_row_major(truth_.factors, d, k);
  U.topRows(options.dim) = random_orthonormal<double>(random, options.dim, k);
  if (options.is_bilinear()) U.bottomRows(options.right_dim) = random_orthonormal<double>(random, options.right_dim, k);
  for (Index i = 0; i < k; ++i) truth_.spectrum[static_cast<std::size_t>(i)] = planted_eigenvalue(options, i);
  if (options.has_weights()) as_vector(truth_.weights) = random_normal<double>(random, d, 1).normalized();
  truth_.intercept = options.intercept.value_or(0);
  if (options.residual > 0)
    residual_signs_ = Eigen::ArrayXd::NullaryExpr(options.is_bilinear() ? std::min(options.dim, options.right_dim) : d,
                                                  [&](Index) { return random.bits() >> 63 ? -1.0 : 1.0; });
  if (options.diagonal != Diagonal::tied) {
    const Eigen::VectorXd diagonal = U.cwiseAbs2() * as_vector(truth_.spectrum);
    Eigen::VectorXd squares = -diagonal;
    if (options.diagonal == Diagonal::free) squares += random_normal<double>(random, d, 1).normalized();
    truth_.squares.assign(squares.data(), squares.data() + d);
  }
  constexpr double outlier_deviations = 10;
  if (options.outliers > 0) outlier_size_ = outlier_deviations * estimate_target_deviation();
}

double PlantedProblem::estimate_target_deviation() const {
  constexpr Index sample_rows = 1000;
  double sum = 0;
  double squares = 0;
  Eigen::RowVectorXd x(options_.total_dim());
  for (Index i = 0; i < sample_rows; ++i) {
    Random random(options_.seed, truth_stream - static_cast<std::uint64_t>(1 + i));
    draw_features(random, x);
    const double y = target(x);
    sum += y;
    squares += y * y;
  }
  const double mean = sum / sample_rows;
  return std::sqrt(std::max(0.0, squares / sample_rows - mean * mean) + options_.noise * options_.noise);
}

void PlantedProblem::draw_features(Random& random, Eigen::RowVectorXd& x) const {
  static const CappedNormal capped;
  const auto fill = [&x](auto&& draw) {
    for (double& feature : x) feature = draw();
  };
  switch (options_.features) {
    case FeatureDistribution::gaussian:
      return fill([&] { return random.normal(); });
    case FeatureDistribution::uniform:
      return fill([&] { return std::numbers::sqrt3 * (2 * random.uniform() - 1); });
    case FeatureDistribution::skewed:
      return fill([&] { return capped.standardize(random.normal()); });
    case FeatureDistribution::rademacher:
      return fill([&] { return random.bits() >> 63 ? -1.0 : 1.0; });
  }
}

/// Computed for each row separately, so that rounding does not depend on the division of the rows into blocks.
double PlantedProblem::target(const Eigen::RowVectorXd& x) const {
  const Index d = options_.total_dim();
  const auto U = as_row_major(truth_.factors, d, options_.rank);
  const Eigen::RowVectorXd Lx = x.head(options_.dim) * U.topRows(options_.dim);
  const Eigen::RowVectorXd Rx = right_first_ > 0 ? x.tail(d - right_first_) * U.bottomRows(d - right_first_) : Lx;
  double y = truth_.intercept + x.dot(as_vector(truth_.weights)) +
             (Lx.array() * Rx.array() * as_vector(truth_.spectrum).transpose().array()).sum();
  if (!truth_.squares.empty()) y += (as_vector(truth_.squares).transpose().array() * x.array().square()).sum();
  if (options_.residual > 0) y += residual_term(x, Lx, Rx);
  return y;
}

double PlantedProblem::residual_term(const Eigen::RowVectorXd& x, const Eigen::RowVectorXd& Lx,
                                     const Eigen::RowVectorXd& Rx) const {
  const Index d = options_.total_dim();
  const auto U = as_row_major(truth_.factors, d, options_.rank);
  const Eigen::VectorXd left = x.head(options_.dim).transpose() - U.topRows(options_.dim) * Lx.transpose();
  const Eigen::VectorXd right = x.tail(d - right_first_).transpose() - U.bottomRows(d - right_first_) * Rx.transpose();
  const Index n = residual_signs_.size();
  return options_.residual * (left.head(n).array() * residual_signs_ * right.head(n).array()).sum();
}

RowMajorMatrix<double> PlantedProblem::residual_times(const RowMajorMatrix<double>& Z) const {
  if (options_.residual == 0) return RowMajorMatrix<double>::Zero(Z.rows(), Z.cols());
  const auto U = as_row_major(truth_.factors, options_.total_dim(), options_.rank);
  const auto project = [&](const RowMajorMatrix<double>& A) -> RowMajorMatrix<double> {
    return A - U * (U.transpose() * A);
  };
  return options_.residual * project(residual_signs_.matrix().asDiagonal() * project(Z));
}

template <typename Scalar>
void PlantedProblem::generate(Index first, Index count, ThreadPool& pool, DenseBlock<Scalar>& block) const {
  const Index d = options_.total_dim();
  block.resize(count, d);
  pool.split(count, [&](int, IndexRange range) {
    Eigen::RowVectorXd x(d);
    for (Index i = range.first; i < range.first + range.count; ++i) {
      Random random(options_.seed, static_cast<std::uint64_t>(first + i));
      draw_features(random, x);
      const double noise = options_.noise > 0 ? options_.noise * random.normal() : 0;
      double y = target(x) + noise;
      if (options_.outliers > 0 && random.uniform() < options_.outliers)
        y += random.bits() >> 63 ? -outlier_size_ : outlier_size_;
      block.targets[static_cast<std::size_t>(i)] = static_cast<Scalar>(y);
      Eigen::Map<Eigen::Matrix<Scalar, 1, Eigen::Dynamic>>(block.values.data() + i * d, d) = x.cast<Scalar>();
    }
  });
}

template void PlantedProblem::generate(Index, Index, ThreadPool&, DenseBlock<float>&) const;
template void PlantedProblem::generate(Index, Index, ThreadPool&, DenseBlock<double>&) const;

}  // namespace dyad
