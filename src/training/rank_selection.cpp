#include "training/rank_selection.h"

#include <cmath>

namespace dyad {
namespace {

constexpr Index large_rank = 16;

}  // namespace

template <typename Scalar>
bool can_select_rank(const TrainSettings& settings, const FeatureMap& map, const RowBlock<Scalar>& first) {
  const bool is_filter = settings.solver == Solver::automatic || settings.solver == Solver::kalman;
  return is_filter && map.kind == Kind::gfm && !first.is_dense && !settings.uses_moments && first.dim >= large_rank;
}

template <typename Scalar>
Index select_rank(StreamOptions options, const Rows<Scalar>& first, const Target& target, ThreadPool& pool) {
  const Index small_rank = options.kalman.shape.rank;
  const auto losses = [&](Index rank) {
    options.kalman.shape.rank = rank;
    StreamLearner<Scalar> learner(options, pool);
    std::vector<Scalar> predictions(static_cast<std::size_t>(first.count()));
    learner.learn(first, predictions);
    std::vector<double> result;
    for (std::size_t i = 0; i < predictions.size(); ++i)
      result.push_back(static_cast<double>(first.weight(static_cast<Index>(i))) *
                       target.score(static_cast<double>(first.targets()[i]), static_cast<double>(predictions[i])));
    return result;
  };
  const std::vector<double> small = losses(small_rank);
  const std::vector<double> large = losses(large_rank);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < small.size(); ++i) {
    sum += large[i] - small[i];
    squares += std::pow(large[i] - small[i], 2);
  }
  // The sum of independent differences has a standard error of about the root of the sum of squares.
  constexpr double required_standard_errors = 2;
  return sum > required_standard_errors * std::sqrt(squares) ? small_rank : large_rank;
}

template bool can_select_rank(const TrainSettings&, const FeatureMap&, const RowBlock<float>&);
template bool can_select_rank(const TrainSettings&, const FeatureMap&, const RowBlock<double>&);
template Index select_rank(StreamOptions, const Rows<float>&, const Target&, ThreadPool&);
template Index select_rank(StreamOptions, const Rows<double>&, const Target&, ThreadPool&);

}  // namespace dyad
