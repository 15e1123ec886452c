#include "inference/strongest_pairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "model/low_rank.h"

namespace dyad {
namespace {

/// Factors of one side times `column_weights`, sorted by decreasing norm. The weights are sqrt|lambda|, with the
/// sign of lambda on the left, so that the inner product of a left and a right row is M_ij.
struct SortedFactors {
  std::vector<Index> features;  ///< feature of each row
  RowMajorMatrix<double> factors;
  std::vector<double> norms;

  SortedFactors(const RowMajorMatrix<double>& side_factors, const Vector<double>& column_weights) {
    const RowMajorMatrix<double> weighted = side_factors * column_weights.asDiagonal();
    const Vector<double> row_norms = weighted.rowwise().norm();
    features.resize(static_cast<std::size_t>(row_norms.size()));
    std::iota(features.begin(), features.end(), Index(0));
    std::stable_sort(features.begin(), features.end(), [&](Index i, Index j) { return row_norms[i] > row_norms[j]; });
    factors.resize(weighted.rows(), weighted.cols());
    for (std::size_t i = 0; i < features.size(); ++i) {
      factors.row(static_cast<Index>(i)) = weighted.row(features[i]);
      norms.push_back(row_norms[features[i]]);
    }
  }
};

/// Orders pairs by decreasing |coefficient|, and ties by their features.
bool is_stronger(const Pair& a, const Pair& b) {
  const double magnitude_a = std::abs(a.coefficient);
  const double magnitude_b = std::abs(b.coefficient);
  if (magnitude_a != magnitude_b) return magnitude_a > magnitude_b;
  return a.left != b.left ? a.left < b.left : a.right < b.right;
}

/// The `top` pairs with the largest |coefficient| of all inserted pairs.
class TopPairs {
 public:
  explicit TopPairs(Index top) : top_(static_cast<std::size_t>(top)) {}
  void insert(const Pair& pair) {
    if (pair.coefficient == 0) return;
    if (heap_.size() == top_ && (top_ == 0 || !is_stronger(pair, heap_.top()))) return;
    heap_.push(pair);
    if (heap_.size() > top_) heap_.pop();
  }
  /// |coefficient| that a pair must exceed to be retained.
  [[nodiscard]] double threshold() const {
    return heap_.size() < top_ ? 0 : top_ == 0 ? INFINITY : std::abs(heap_.top().coefficient);
  }
  /// Removes all pairs and returns them by decreasing |coefficient|.
  [[nodiscard]] std::vector<Pair> extract_sorted() {
    std::vector<Pair> pairs;
    for (; !heap_.empty(); heap_.pop()) pairs.push_back(heap_.top());
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

 private:
  struct WeakestOnTop {
    bool operator()(const Pair& a, const Pair& b) const { return is_stronger(a, b); }
  };
  std::size_t top_;
  std::priority_queue<Pair, std::vector<Pair>, WeakestOnTop> heap_;
};

}  // namespace

Vector<double> total_square_coefficients(const Model<double>& model) {
  Vector<double> squares = diagonal_of_interactions(model);
  // With Diagonal::zero the two terms cancel up to rounding. The tolerance is a multiple of the rounding error of
  // single precision (1.2e-7), in which models may be stored.
  constexpr double cancellation_tolerance = 1e-6;
  const Vector<double> rounding = cancellation_tolerance * squares.cwiseAbs();
  if (!model.squares.empty()) squares += as_vector(model.squares);
  return (squares.cwiseAbs().array() > rounding.array()).select(squares, 0);
}

StrongestPairs strongest_pairs(const Model<double>& model, Index top, const std::vector<Index>& linear_groups,
                               Index max_products) {
  const Sides sides(model);
  const auto U = as_row_major(model.factors, model.dim(), model.rank());
  const Vector<double> root = as_vector(model.spectrum).cwiseAbs().cwiseSqrt();
  const Vector<double> signed_root = root.cwiseProduct(as_vector(model.spectrum).cwiseSign());
  const SortedFactors left(sides.left(U), signed_root);
  const SortedFactors right(sides.right(U), root);
  const double multiplicity = sides.is_bilinear() ? 1 : 2;  // M_ij and M_ji contribute to the same product

  const auto group_of = [&](Index feature) {
    return linear_groups.empty() ? Index(-1) : linear_groups[static_cast<std::size_t>(feature)];
  };
  const auto are_exclusive = [&](Index i, Index j) {
    return group_of(i) >= 0 && group_of(i) == group_of(j + sides.right_first());
  };

  TopPairs best(top);
  Index product_count = 0;
  StrongestPairs result;
  if (!sides.is_bilinear()) {
    const Vector<double> squares = total_square_coefficients(model);
    for (Index j = 0; j < squares.size(); ++j)
      if (group_of(j) < 0) best.insert({j, j, squares[j]});
  }
  const std::size_t right_count = right.norms.size();
  for (std::size_t i = 0; i < left.norms.size(); ++i) {
    const std::size_t first = sides.is_bilinear() ? 0 : i + 1;
    if (first == right_count) break;
    const double bound = multiplicity * left.norms[i] * right.norms[first];
    if (bound <= best.threshold()) break;
    if (product_count >= max_products) {
      result.is_exact = false;
      result.bound = bound;
      break;
    }
    for (std::size_t j = first; j < right_count; ++j) {
      if (multiplicity * left.norms[i] * right.norms[j] <= best.threshold()) break;
      ++product_count;
      if (are_exclusive(left.features[i], right.features[j])) continue;
      const double coefficient =
          multiplicity * left.factors.row(static_cast<Index>(i)).dot(right.factors.row(static_cast<Index>(j)));
      Pair pair{left.features[i], right.features[j], coefficient};
      if (!sides.is_bilinear() && pair.left > pair.right) std::swap(pair.left, pair.right);
      best.insert(pair);
    }
  }
  if (result.is_exact) result.bound = std::isfinite(best.threshold()) ? best.threshold() : 0;
  result.pairs = best.extract_sorted();
  return result;
}

}  // namespace dyad
