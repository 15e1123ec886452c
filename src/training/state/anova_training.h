#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "encoding/column_reader.h"
#include "solvers/anova/anova_fit.h"
#include "solvers/anova/basis_sums.h"
#include "training/state/train_solver.h"

namespace dyad {

/// Why the rows of a map cannot be fitted by the solver anova; empty if they can. Its tables and matrices have at most
/// 200 columns, of which one is numeric, and at most 64 levels per categorical column, and its sums fit in `memory`.
std::string anova_obstacle(const FeatureMap& map, double memory);

/// Whether the options allow the solver anova: it has no rank, diagonal, half-life, passes, batch or hashing.
bool allows_anova(const TrainOptions& options);

/// The solver anova: caches the columns of all rows and fits them when the model is requested. If the rows exceed
/// `TrainOptions::memory`, the functions are selected on the first rows, and their coefficients and variances are
/// estimated from sums over all rows (BasisSums). A uniform random sample of all rows (reservoir sampling, Vitter 1985)
/// shows whether the first rows were representative; otherwise the model is fitted to the sample. Refers to the map and
/// the pool; the caller keeps them alive.
template <typename Scalar>
class AnovaTraining : public TrainSolver<Scalar> {
 public:
  /// `has_counts`: weights are repetition counts; otherwise they are scaled to a mean of 1.
  AnovaTraining(const TrainSettings& settings, const FeatureMap& map, double memory, bool has_counts, ThreadPool& pool,
                std::function<bool()> interrupted, FitProgress progress);

  /// Caches the rows. The predictions are the mean of the targets so far.
  void learn(const Rows<Scalar>& rows, std::span<double> predictions) override;
  [[nodiscard]] bool predicted_by_constant(std::size_t) const override { return true; }
  [[nodiscard]] bool predicts_rows() const override { return false; }
  void grow(Index, Index) override {}
  Model<double> model() override { return Model<double>(0, 0); }
  /// The model of the last fit. Between fits, rows are fitted again only if their number has grown by half, so that
  /// the time of frequent checkpoints is bounded.
  const AnovaModel* anova() override;
  void set_clipping(FeatureMap& map) const override;
  void finish_pass() override;
  [[nodiscard]] bool was_interrupted() const override { return fit_ && fit_->was_interrupted; }
  void archive(Archive& archive) override;

  [[nodiscard]] bool is_constant() const override;
  [[nodiscard]] std::string constant_reason() const override {
    return "the model is a constant: no function of a column or pair has evidence in these rows";
  }
  [[nodiscard]] std::string plan() const override;
  [[nodiscard]] std::string origin() const override;
  [[nodiscard]] std::string warning() const override;
  [[nodiscard]] double noise() const override;
  /// Residuals of regression are divided by 1 - dof / n (generalized cross-validation).
  void for_each_fitted(const std::function<void(double, double, double)>& visit) const override;

 private:
  /// Rows of a table with targets and weights.
  struct CachedRows {
    ColumnTable table;
    std::vector<double> targets;
    std::vector<double> weights;

    [[nodiscard]] Index count() const { return table.count(); }
    void append(const ColumnTable& block, std::size_t i, double target, double weight);
    void clear();
  };

  /// Bounds of the values of a numeric column, scaled.
  struct Bounds {
    double low;
    double high;
  };

  void fit();
  /// Determines the bounds of all columns from the cached rows, and clips these rows, unless `are_bounds_set_`. The
  /// bounds of the first rows stay if no later value lies outside of them.
  void set_bounds();
  void clip(ColumnTable& table) const;
  [[nodiscard]] AnovaOptions make_options(bool reports) const;
  /// Selects functions on the cached rows and estimates all variances.
  [[nodiscard]] AnovaFit fit_cached_rows(bool reports);
  /// Weights of cached rows in units of a row; empty: all 1.
  [[nodiscard]] std::vector<double> unit_weights(const CachedRows& rows) const;
  /// Appends row i of a block to the cache, or replaces a random row of a full cache.
  void cache_row(const ColumnTable& block, std::size_t i, double target, double weight);
  /// Starts to accumulate sums for functions that are selected on the cached rows.
  void start_sums();
  /// Adds rows to sums for the functions of `reference`.
  void add_to_sums(const AnovaFit& reference, const CachedRows& rows, BasisSums& sums);
  /// Adds the pending rows to the sums.
  void flush();
  /// Replaces the fit of the sums by a fit of the random sample if that predicts better.
  void check_order();
  /// Mean loss of the cached rows: squared error of the scaled target, or log-loss.
  [[nodiscard]] double cached_loss(const AnovaModel& model) const;
  [[nodiscard]] double row_bytes() const {
    return static_cast<double>((cache_.table.columns.size() + 2) * sizeof(double));
  }
  void archive_rows(Archive& archive, Index rows);
  /// `functions`: null when loading.
  void archive_sums(Archive& archive, const AnovaFit* functions);
  /// Whether the model file contains the cached rows.
  [[nodiscard]] bool stores_rows() const;
  /// Whether the model file contains sums if it does not contain the rows.
  [[nodiscard]] bool stores_sums(const AnovaModel& model) const;

  const FeatureMap& map_;
  ThreadPool& pool_;
  std::function<bool()> interrupted_;
  FitProgress progress_;
  bool has_curves_;
  double memory_;  ///< bytes
  bool has_counts_;
  Index max_rows_ = 0;  ///< of the cache
  Index rows_seen_ = 0;
  Random random_;
  CachedRows cache_;            ///< all rows, or a uniform random sample of them
  bool has_sample_ = true;      ///< false: the cache does not contain rows of earlier runs
  std::vector<Bounds> bounds_;  ///< of each column; categorical columns: unused
  bool are_bounds_set_ = false;
  double weight_unit_ = 1;   ///< weight of one row in units of the input
  double weighted_sum_ = 0;  ///< of the targets
  double total_weight_ = 0;
  std::optional<AnovaFit> reference_;  ///< functions of `sums_`; null: all rows are cached
  BasisSums sums_;                     ///< over all rows except the pending ones
  CachedRows pending_;                 ///< rows that are not in the sums yet
  std::optional<AnovaFit> fit_;        ///< last fit; null: none yet
  Index fitted_rows_ = 0;              ///< value of `rows_seen_` at the last fit
  bool is_order_harmful_ = false;      ///< the first rows were not representative
};

extern template class AnovaTraining<float>;
extern template class AnovaTraining<double>;

}  // namespace dyad
