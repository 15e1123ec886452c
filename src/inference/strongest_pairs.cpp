#include "inference/strongest_pairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "model/low_rank.h"

namespace dyad {
namespace {

/// One side's factors times sqrt|lambda| (and the sign, on the left), longest first.
struct Ordered {
  std::vector<Index> features;
  Tall<double> factors;
  std::vector<double> lengths;

  Ordered(const Tall<double>& of_side, const Vector<double>& column_weights) {
    const Tall<double> weighted = of_side * column_weights.asDiagonal();
    const Vector<double> norms = weighted.rowwise().norm();
    features.resize(static_cast<std::size_t>(norms.size()));
    std::iota(features.begin(), features.end(), Index(0));
    std::stable_sort(features.begin(), features.end(), [&](Index i, Index j) { return norms[i] > norms[j]; });
    factors.resize(weighted.rows(), weighted.cols());
    for (std::size_t i = 0; i < features.size(); ++i) {
      factors.row(static_cast<Index>(i)) = weighted.row(features[i]);
      lengths.push_back(norms[features[i]]);
    }
  }
};

bool stronger(const Pair& a, const Pair& b) {
  const double size_a = std::abs(a.coefficient);
  const double size_b = std::abs(b.coefficient);
  if (size_a != size_b) return size_a > size_b;
  return a.left != b.left ? a.left < b.left : a.right < b.right;
}

/// Keeps the strongest pairs; the weakest of them is on top.
class Best {
 public:
  explicit Best(Index top) : top_(static_cast<std::size_t>(top)) {}
  void offer(const Pair& pair) {
    if (pair.coefficient == 0) return;
    if (heap_.size() == top_ && (top_ == 0 || !stronger(pair, heap_.top()))) return;
    heap_.push(pair);
    if (heap_.size() > top_) heap_.pop();
  }
  /// What a pair must exceed to be of interest.
  [[nodiscard]] double threshold() const {
    return heap_.size() < top_ ? 0 : top_ == 0 ? INFINITY : std::abs(heap_.top().coefficient);
  }
  [[nodiscard]] std::vector<Pair> sorted() {
    std::vector<Pair> pairs;
    for (; !heap_.empty(); heap_.pop()) pairs.push_back(heap_.top());
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

 private:
  struct Weaker {
    bool operator()(const Pair& a, const Pair& b) const { return stronger(a, b); }
  };
  std::size_t top_;
  std::priority_queue<Pair, std::vector<Pair>, Weaker> heap_;
};

}  // namespace

Vector<double> square_coefficients(const Model<double>& model) {
  Vector<double> squares = diagonal_of_interactions(model);
  // Where the diagonal is zero the two cancel, up to rounding.
  const Vector<double> rounding = 1e-6 * squares.cwiseAbs();
  if (!model.squares.empty()) squares += as_vector(model.squares);
  return (squares.cwiseAbs().array() > rounding.array()).select(squares, 0);
}

StrongestPairs strongest_pairs(const Model<double>& model, Index top, const std::vector<Index>& linear_groups,
                               Index products) {
  const Sides sides(model);
  const auto U = as_tall(model.factors, model.dim(), model.rank());
  const Vector<double> root = as_vector(model.spectrum).cwiseAbs().cwiseSqrt();
  const Vector<double> signed_root = root.cwiseProduct(as_vector(model.spectrum).cwiseSign());
  const Ordered left(sides.left(U), signed_root);
  const Ordered right(sides.right(U), root);
  const double times = sides.two() ? 1 : 2;  // both M_ij and M_ji

  const auto group_of = [&](Index feature) {
    return linear_groups.empty() ? Index(-1) : linear_groups[static_cast<std::size_t>(feature)];
  };
  const auto exclude_each_other = [&](Index i, Index j) {
    return group_of(i) >= 0 && group_of(i) == group_of(j + sides.right_first());
  };

  Best best(top);
  StrongestPairs result;
  if (!sides.two()) {
    const Vector<double> squares = square_coefficients(model);
    for (Index j = 0; j < squares.size(); ++j)
      if (group_of(j) < 0) best.offer({j, j, squares[j]});
  }
  const std::size_t rights = right.lengths.size();
  for (std::size_t i = 0; i < left.lengths.size(); ++i) {
    const std::size_t first = sides.two() ? 0 : i + 1;
    if (first == rights) break;
    const double bound = times * left.lengths[i] * right.lengths[first];
    if (bound <= best.threshold()) break;
    if (products <= 0) {
      result.exact = false;
      result.bound = bound;
      break;
    }
    for (std::size_t j = first; j < rights; ++j) {
      if (times * left.lengths[i] * right.lengths[j] <= best.threshold()) break;
      --products;
      if (exclude_each_other(left.features[i], right.features[j])) continue;
      const double coefficient =
          times * left.factors.row(static_cast<Index>(i)).dot(right.factors.row(static_cast<Index>(j)));
      Pair pair{left.features[i], right.features[j], coefficient};
      if (!sides.two() && pair.left > pair.right) std::swap(pair.left, pair.right);
      best.offer(pair);
    }
  }
  if (result.exact) result.bound = std::isfinite(best.threshold()) ? best.threshold() : 0;
  result.pairs = best.sorted();
  return result;
}

}  // namespace dyad
