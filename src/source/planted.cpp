#include "source/planted.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/random.h"

namespace dyad {
namespace {

void require(bool holds, const std::string& sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

std::string got(double value) { return ", got " + std::to_string(value); }

/// Evenly spaced from 1 down to 1/condition.
double eigenvalue(const PlantedOptions& options, Index i) {
  const double step =
      options.rank == 1 ? 0
                        : (1 - 1 / options.condition) * static_cast<double>(i) / static_cast<double>(options.rank - 1);
  const bool negative = options.signs == Signs::mixed && i % 2 == 1;
  return negative ? step - 1 : 1 - step;
}

}  // namespace

void PlantedOptions::validate() const {
  require(dim >= 1 && dim <= std::numeric_limits<std::int32_t>::max(),
          "dim must lie in [1, 2^31), got " + std::to_string(dim));
  require(rank >= 1 && rank <= dim,
          "rank must lie in [1, dim] = [1, " + std::to_string(dim) + "], got " + std::to_string(rank));
  require(kind != Kind::phase || rank == 1, "phase retrieval has rank 1, got " + std::to_string(rank));
  require(condition >= 1 && std::isfinite(condition), "condition must be a number of at least 1" + got(condition));
  require(noise >= 0 && std::isfinite(noise), "noise is a standard deviation and must be at least 0" + got(noise));
  require(residual >= 0 && residual * condition < 1,
          "residual must lie in [0, 1/condition), below the weakest planted eigenvalue" + got(residual));
  require(!intercept || std::isfinite(*intercept), "intercept must be a finite number");
}

PlantedProblem::PlantedProblem(const PlantedOptions& options)
    : options_(options),
      truth_((options.validate(), options.dim), options.rank),
      projector_(options.dim, options.rank + 1) {
  Random random(options.seed, truth_stream);
  const Index d = options.dim;
  const Index k = options.rank;
  const Tall<double> U = random_orthonormal<double>(random, d, k);
  as_tall(truth_.factors, d, k) = U;
  for (Index i = 0; i < k; ++i) truth_.spectrum[static_cast<std::size_t>(i)] = eigenvalue(options, i);
  if (options.kind == Kind::gfm) as_vector(truth_.weights) = random_normal<double>(random, d, 1).normalized();
  truth_.intercept = options.intercept.value_or(0);
  projector_ << U, as_vector(truth_.weights);
  if (options.residual > 0)
    residual_signs_ = Eigen::ArrayXd::NullaryExpr(d, [&](Index) { return random.bits() >> 63 ? -1.0 : 1.0; });
}

/// Row by row, so that cutting the stream elsewhere does not change the rounding.
double PlantedProblem::target(const Eigen::RowVectorXd& x, double noise) const {
  const Index k = options_.rank;
  const Eigen::RowVectorXd projected = x * projector_;
  const auto Ux = projected.head(k);
  double y =
      truth_.intercept + projected[k] + (Ux.array().square() * as_vector(truth_.spectrum).transpose().array()).sum();
  if (options_.residual > 0) {
    const Eigen::ArrayXd rest = x.transpose() - projector_.leftCols(k) * Ux.transpose();
    y += options_.residual * (residual_signs_ * rest.square()).sum();
  }
  return y + noise;
}

template <typename Scalar>
void PlantedProblem::read(Index first, Index count, Workers& workers, DenseBlock<Scalar>& block) const {
  const Index d = options_.dim;
  block.resize(count, d);
  workers.split(count, [&](int, Share share) {
    Eigen::RowVectorXd x(d);
    for (Index i = share.first; i < share.first + share.count; ++i) {
      Random random(options_.seed, static_cast<std::uint64_t>(first + i));
      for (Index j = 0; j < d; ++j) x[j] = random.normal();
      const double noise = options_.noise > 0 ? options_.noise * random.normal() : 0;
      block.targets[static_cast<std::size_t>(i)] = static_cast<Scalar>(target(x, noise));
      Eigen::Map<Eigen::Matrix<Scalar, 1, Eigen::Dynamic>>(block.values.data() + i * d, d) = x.cast<Scalar>();
    }
  });
}

template void PlantedProblem::read(Index, Index, Workers&, DenseBlock<float>&) const;
template void PlantedProblem::read(Index, Index, Workers&, DenseBlock<double>&) const;

}  // namespace dyad
