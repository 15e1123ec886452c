#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "serialization/model_file.h"
#include "solvers/anova/anova_fit.h"
#include "solvers/anova/basis/basis_sums.h"
#include "training/state/anova_rows.h"
#include "training/state/train_solver.h"

namespace dyad {

/// Why the rows of a map cannot be fitted by the solver anova; empty if they can. Its tables and matrices have at most
/// 200 columns, of which one is numeric, and its sums fit in `memory`.
std::string anova_obstacle(const FeatureMap& map, double memory);
/// Whether a categorical column has more levels than the function of a column. Functions then do not distinguish the
/// least frequent levels, and a low-rank model may be more accurate.
bool has_many_levels(const FeatureMap& map);

/// Options of the fit for a target: task and censoring.
AnovaOptions anova_options(const Target& target);

/// Saves or loads the functions and the prior of a fit, in the current group of the training state.
void archive_anova_functions(Archive& archive, AnovaFit& fit);
/// Functions and prior of a model of the solver anova that was saved with its training state.
/// \throws DataError for `name` if the state is missing or damaged
AnovaFit load_anova_functions(const ModelFile& file, const std::string& name);
/// The saved sums for these functions; null if the training state does not contain them.
std::optional<BasisSums> load_anova_sums(const ModelFile& file, const AnovaFit& functions);

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
  void set_clipping(FeatureMap& map) const override { bounds_.write_to(map); }
  void finish_pass() override;
  [[nodiscard]] bool was_interrupted() const override { return fit_ && fit_->was_interrupted; }
  void archive(Archive& archive) override;
  /// Replaces the cached rows by sums for these functions. No effect if there are sums already.
  void replace_rows_by_sums(AnovaFit functions);
  /// Sets sums over all rows for the functions of `reference`, and the fit of these sums.
  void set_sums(AnovaFit reference, BasisSums sums, AnovaFit fit, Index rows);
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
  [[nodiscard]] AnovaOptions make_options(bool reports) const;
  /// Selects functions on the cached rows and estimates all variances.
  [[nodiscard]] AnovaFit fit_cached_rows(bool reports);
  /// Starts to accumulate sums for functions that are selected on the cached rows.
  void start_sums();
  /// Adds rows to sums for the functions of `reference`.
  void add_to_sums(const AnovaFit& reference, const AnovaRows& rows, BasisSums& sums);
  /// Adds the pending rows to the sums.
  void flush();
  /// Replaces the fit of the sums by a fit of the random sample if that predicts better.
  void check_order();
  /// Mean loss of the cached rows: squared error of the scaled target, or log-loss.
  [[nodiscard]] double cached_loss(const AnovaModel& model) const;
  [[nodiscard]] double row_bytes() const {
    return static_cast<double>((sample_.rows.table.columns.size() + 2) * sizeof(double));
  }
  /// Whether the model file contains the cached rows.
  [[nodiscard]] bool stores_rows() const;
  /// Whether the model file contains sums if it does not contain the rows.
  [[nodiscard]] bool stores_sums(const AnovaModel& model) const;
  void archive_sums(Archive& archive, AnovaFit reference);

  const FeatureMap& map_;
  ThreadPool& pool_;
  std::function<bool()> interrupted_;
  FitProgress progress_;
  bool has_curves_;
  double memory_;  ///< bytes
  bool has_counts_;
  AnovaSample sample_;      ///< cached rows: all rows, or a random sample of them
  bool has_sample_ = true;  ///< false: the cache does not contain rows of earlier runs
  ColumnBounds bounds_;
  bool are_bounds_set_ = false;  ///< the cached rows at the last fit are clipped
  double weight_unit_ = 1;       ///< weight of one row in units of the input
  double weighted_sum_ = 0;      ///< of the targets
  double total_weight_ = 0;
  std::optional<AnovaFit> reference_;  ///< functions of `sums_`; null: all rows are cached
  BasisSums sums_;                     ///< over all rows except the pending ones
  AnovaRows pending_;                  ///< rows that are not in the sums yet
  std::optional<AnovaFit> fit_;        ///< last fit; null: none yet
  Index fitted_rows_ = 0;              ///< number of rows at the last fit
  bool is_order_harmful_ = false;      ///< the first rows were not representative
};

extern template class AnovaTraining<float>;
extern template class AnovaTraining<double>;

}  // namespace dyad
