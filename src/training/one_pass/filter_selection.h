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

/// Online selection among Kalman filters that learn the same rows from different starts. Each candidate predicts every
/// row before it learns it, and the losses of these predictions are compared. The predictions and the model are those
/// of the best candidate so far. Does not own the thread pool; the caller keeps it alive. Not thread-safe.
template <typename Scalar>
class FilterSelection {
 public:
  /// Initialization of a candidate. The values are stored in training states.
  enum class Origin {
    random,         ///< small random factors
    moments,        ///< estimate of the moment solver
    buffered_rows,  ///< Gauss-Newton fit to the first rows (BufferedStart)
    phase_search,   ///< PhaseSearch
    sign_flipped,   ///< copy of the best candidate with the signs of its weak factors flipped
    multi_pass,     ///< multi-pass training
    shuffled        ///< rows in random order, after rows in an order that hurts (RowSample)
  };

  explicit FilterSelection(ThreadPool& pool) : pool_(pool) {}

  /// Adds a candidate.
  void add(KalmanFilter<Scalar> filter, Origin origin);
  /// Adds a candidate as the best one, and restarts all comparisons.
  void promote(KalmanFilter<Scalar> filter, Origin origin);

  /// Interval to which predictions of regression are clamped before their losses are compared.
  void set_bounds(double low, double high) {
    low_ = low;
    high_ = high;
  }

  /// Updates all candidates. Writes the predictions of the best one, made before each row was learned.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> predictions);

  /// Updates the selection: removes candidates that are significantly worse than the best one, reduces the number of
  /// candidates with the number of rows, and replaces the best candidate by one that is significantly better.
  void select();

  [[nodiscard]] bool is_empty() const { return candidates_.empty(); }
  [[nodiscard]] Index count() const { return static_cast<Index>(candidates_.size()); }
  [[nodiscard]] Index count(Origin origin) const;
  [[nodiscard]] const KalmanFilter<Scalar>& best_filter() const { return candidates_.front().filter; }
  [[nodiscard]] Origin best_origin() const { return candidates_.front().origin; }
  /// Removes the worst candidate of this origin, unless it is the best of all candidates.
  void drop_worst(Origin origin);

  void drop_all_but_best() { candidates_.erase(std::next(candidates_.begin()), candidates_.end()); }
  /// Removes candidates with parameters that are not finite, which archive() cannot load, but never the best one.
  void drop_non_finite();

  /// Calls visit(filter) for all candidates.
  void for_each(const std::function<void(KalmanFilter<Scalar>&)>& visit);
  /// Calls visit(filter) for the best candidate.
  void update_best(const std::function<void(KalmanFilter<Scalar>&)>& visit) { visit(candidates_.front().filter); }

  /// Saves or loads all candidates. `make` returns a filter of the right shape to load into.
  void archive(Archive& archive, const std::function<KalmanFilter<Scalar>()>& make);

 private:
  /// Running mean of the loss of the best candidate minus that of this one, over the rows since they were first
  /// compared. The weight of row i is proportional to i, so that recent rows count more.
  struct LossDifference {
    double rows = 0;  ///< number of rows
    double mean = 0;
    double square = 0;  ///< mean square

    void add(double difference);
    /// The mean divided by its standard error; 0 for fewer than `min_compared_rows` rows.
    [[nodiscard]] double z_score() const;
  };
  struct Candidate {
    KalmanFilter<Scalar> filter;
    Origin origin;
    LossDifference advantage{};  ///< over the best candidate; zero for the best one
    std::vector<Scalar> predictions{};
  };

  [[nodiscard]] double loss(const Likelihood& likelihood, Scalar target, Scalar prediction) const;

  ThreadPool& pool_;
  std::list<Candidate> candidates_;  ///< the best one first
  double rows_ = 0;                  ///< number of rows learned
  double low_ = -std::numeric_limits<double>::infinity();
  double high_ = std::numeric_limits<double>::infinity();
};

}  // namespace dyad
