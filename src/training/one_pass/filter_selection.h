#pragma once

#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "solvers/kalman/filter.h"

namespace dyad {

/// Filters that learn the same rows from different starts. Each predicts every row before it learns it, so the better
/// one shows; the best so far is the best candidate, whose predictions count.
template <typename Scalar>
class FilterSelection {
 public:
  /// Where a candidate comes from.
  enum class Origin { nothing, moments, cached_rows, search, turned, all_rows };

  explicit FilterSelection(ThreadPool& pool) : pool_(pool) {}

  void enter(KalmanFilter<Scalar> filter, Origin origin);
  /// The same, as the best candidate.
  void promote(KalmanFilter<Scalar> filter, Origin origin);

  /// Predictions beyond this count as lying there, which the losses of regression need.
  void set_bounds(double low, double high) {
    low_ = low;
    high_ = high;
  }

  /// Writes the best candidate's predictions.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  /// Lets the best challenger take over if it is better beyond doubt, drops those who are clearly behind, and more of
  /// them the longer the race has lasted.
  void decide();

  [[nodiscard]] bool is_empty() const { return candidates_.empty(); }
  [[nodiscard]] Index count() const { return static_cast<Index>(candidates_.size()); }
  [[nodiscard]] Index count(Origin origin) const;
  [[nodiscard]] const KalmanFilter<Scalar>& best_filter() const { return candidates_.front().filter; }
  [[nodiscard]] Origin champion_origin() const { return candidates_.front().origin; }
  /// The worst challenger of this origin leaves.
  void drop_worst(Origin origin);

  void drop_challengers() { candidates_.erase(std::next(candidates_.begin()), candidates_.end()); }
  /// Challengers whose numbers have run away leave: they could not be loaded again.
  void drop_runaways();

  void for_each(const std::function<void(KalmanFilter<Scalar>&)>& visit);
  void for_champion(const std::function<void(KalmanFilter<Scalar>&)>& visit) { visit(candidates_.front().filter); }

  /// `make`: a filter of the right shape to load into.
  void archive(Archive& archive, const std::function<KalmanFilter<Scalar>()>& make);

 private:
  /// The best candidate's loss less the challenger's, row by row; recent rows count more.
  struct Lead {
    double rows = 0;
    double mean = 0;
    double square = 0;

    void add(double difference);
    /// In units of its own uncertainty.
    [[nodiscard]] double significance() const;
  };
  struct Candidate {
    KalmanFilter<Scalar> filter;
    Origin origin;
    Lead lead{};
    std::vector<Scalar> predictions{};
  };

  [[nodiscard]] double loss(const Likelihood& likelihood, Scalar target, Scalar prediction) const;
  [[nodiscard]] Index max_candidates() const;

  ThreadPool& pool_;
  std::list<Candidate> candidates_;  ///< the best candidate first
  double rows_ = 0;
  double low_ = -std::numeric_limits<double>::infinity();
  double high_ = std::numeric_limits<double>::infinity();
};

}  // namespace dyad
