#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dyad/rows.h>

#include "base/random.h"
#include "likelihood/likelihood.h"
#include "solvers/kalman/filter.h"

namespace dyad {

/// Uniform sample of the rows of a stream (reservoir sampling with skips, Li 1994, "Reservoir-sampling
/// algorithms of time complexity O(n(1 + log(N/n)))"), each
/// with the loss of its prediction before it was learned. It detects row orders in which later rows replace what was
/// learned from earlier ones: the final filter then predicts rows that it has learned worse than it predicted them
/// before. Rows of weight 0 are ignored. Not thread-safe.
template <typename Scalar>
class RowSample {
 public:
  explicit RowSample(std::uint64_t seed) : random_(seed, start_stream - 1) {}

  /// Adds rows with their linear predictors before they were learned.
  void add(const Rows<Scalar>& rows, std::span<const double> predictors, const Likelihood& likelihood);

  [[nodiscard]] Index count() const { return static_cast<Index>(entries_.size()); }
  /// Whether the sample contains all rows so far.
  [[nodiscard]] bool has_all_rows() const { return static_cast<double>(entries_.size()) == rows_; }
  /// Mean loss of the filter on the sample.
  [[nodiscard]] double loss(const KalmanFilter<Scalar>& filter) const { return compare(filter).loss; }
  /// Mean loss of the best constant on the sample.
  [[nodiscard]] double constant_loss(const Likelihood& likelihood) const;
  /// Whether the mean loss of the filter exceeds that of the predictions before learning, by more than three standard
  /// errors of the paired difference.
  [[nodiscard]] bool order_hurts(const KalmanFilter<Scalar>& filter) const;

  /// Whether consecutive rows are more similar than random pairs of rows, by more than three standard errors of the
  /// mean cosine similarity.
  [[nodiscard]] bool has_similar_neighbors() const;

  /// Copies of the sampled rows, sparse or dense as the rows of the stream.
  [[nodiscard]] Rows<Scalar> view(Index dim);

 private:
  /// Limits of the number of rows and of their entries. Sensitivity: docs/constants.md.
  static constexpr std::size_t max_rows = 16384;
  static constexpr std::size_t max_entries = std::size_t{1} << 19;

  struct Entry {
    std::vector<std::int32_t> columns;
    std::vector<Scalar> values;
    Scalar target = 0;
    Scalar weight = 1;
    double loss = 0;        ///< of the prediction before the row was learned
    double similarity = 0;  ///< to the preceding row
  };
  struct Comparison {
    double loss = 0;        ///< mean loss of the filter
    double difference = 0;  ///< mean difference to the losses before learning
    double standard_error = 0;
  };

  void assign(Entry& entry, const Rows<Scalar>& rows, Index i) const;
  /// Draws `next_row_` for a full sample.
  void draw_next_row();
  /// x'z / (|x| |z|).
  [[nodiscard]] static double similarity(const Entry& x, const Entry& z);
  [[nodiscard]] double loss(const Likelihood& likelihood, double target, double predictor) const;
  [[nodiscard]] Comparison compare(const KalmanFilter<Scalar>& filter) const;

  Random random_;
  std::size_t capacity_ = max_rows;
  double rows_ = 0;  ///< number of rows so far
  bool is_sparse_ = false;
  double next_row_ = 1;     ///< value of rows_ at the next sampled row
  double skip_weight_ = 1;  ///< W of Li's algorithm L
  Entry previous_;          ///< last row
  double min_target_ = 0;
  double max_target_ = 0;
  std::vector<Entry> entries_;
  // Contiguous copies for view().
  std::vector<Index> offsets_;
  std::vector<std::int32_t> columns_;
  std::vector<Scalar> values_;
  std::vector<Scalar> targets_;
  std::vector<Scalar> weights_;
};

}  // namespace dyad
