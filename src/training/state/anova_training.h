#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "encoding/column_reader.h"
#include "solvers/anova/anova_fit.h"
#include "training/state/train_solver.h"

namespace dyad {

/// Why the rows of a map cannot be fitted by the solver anova; empty if they can. Its tables and matrices have at most
/// 200 columns, of which one is numeric, and at most 64 levels per categorical column, and its sums fit in `memory`.
std::string anova_obstacle(const FeatureMap& map, double memory);

/// Whether the options allow the solver anova: it has no rank, diagonal, half-life, passes, batch or hashing.
bool allows_anova(const TrainOptions& options);

/// The solver anova: caches the columns of all rows and fits them when the model is requested. If the rows exceed half
/// of `TrainOptions::memory`, a uniform random sample of them is cached (reservoir sampling, Vitter 1985). Refers to
/// the map and the pool; the caller keeps them alive.
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
  void fit();
  /// Appends row i of a block to the cache, or replaces a random row of a full cache.
  void cache_row(const ColumnTable& block, std::size_t i, double target, double weight);
  [[nodiscard]] double row_bytes() const { return static_cast<double>((table_.columns.size() + 2) * sizeof(double)); }

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
  ColumnTable table_;
  std::vector<double> targets_;
  std::vector<double> weights_;
  double weighted_sum_ = 0;  ///< of the targets
  double total_weight_ = 0;
  std::optional<AnovaFit> fit_;  ///< last fit; null: none yet
  Index fitted_rows_ = 0;        ///< value of `rows_seen_` at the last fit
};

extern template class AnovaTraining<float>;
extern template class AnovaTraining<double>;

}  // namespace dyad
