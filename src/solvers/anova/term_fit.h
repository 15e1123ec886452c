#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "solvers/anova/anova_fit.h"
#include "solvers/anova/response.h"
#include "solvers/anova/terms.h"
#include "solvers/anova/variance_components.h"

namespace dyad {

/// Work of an estimation of all variances.
struct EstimationEffort {
  Index iterations = 1;   ///< of REML (regression)
  Index class_steps = 1;  ///< of iteratively reweighted least squares (classes)
  /// Classes: steps behind the first one keep the weights of the rows and with them the Gram matrix.
  bool reuses_gram = false;
};

/// Functions of columns and pairs on the rows of a table: their sums, prior variances, coefficients and fitted values.
/// Does not own the table, the options and the pool; the caller keeps them alive.
class TermFit {
 public:
  TermFit(const ColumnTable& table, std::span<const double> targets, std::span<const double> weights,
          const AnovaOptions& options, ThreadPool& pool);

  /// Removes the terms with indices in `replaced`, appends `added`, estimates all variances and solves for the
  /// coefficients. Targets of regression stay those of the last update_response().
  void replace_terms(const std::set<Index>& replaced, std::vector<std::unique_ptr<Term>> added,
                     const EstimationEffort& effort);
  /// Estimates the variances with unchanged terms and weights of rows, and solves for the coefficients.
  void estimate(Index iterations, double max_growth = VarianceOptions().max_growth);
  /// Working responses at the current predictions.
  void update_response() { response_.update(predictor_); }
  /// Fits the terms with precisions of the rows, which are scaled to a mean of 1 (regression).
  void reweight(std::span<const double> precisions, Index iterations, double max_growth);

  /// Prior variances, noise variance and predictions.
  struct State {
    std::vector<std::vector<double>> thetas;
    double noise_variance = 1;
    std::vector<double> predictor;
  };
  [[nodiscard]] State state() const;
  /// Removes the terms behind those of `state` and solves with its variances.
  void restore(const State& state);

  /// Log evidence minus k n / (n - k - 1) for n rows and k variances, half of the corrected information criterion of
  /// Akaike (AICc; Hurvich and Tsai 1989). Variances near 0 count less than 1. Classes: Laplace approximation of the
  /// log marginal likelihood. Comparable between fits of the same working responses, and between all fits of classes.
  [[nodiscard]] double score() const;
  /// Working residuals times the weights, with a mean of 0, optionally with a function of the model added back.
  [[nodiscard]] std::vector<double> weighted_residuals(const Term* added) const;
  [[nodiscard]] double held_out() const;
  [[nodiscard]] AnovaFit make_result() const;
  /// Sends the state after a round to AnovaOptions::progress.
  void report(const std::string& round) const;

  [[nodiscard]] bool was_interrupted() const { return options_.interrupted && options_.interrupted(); }
  /// Runs task(i) for i in [0, count) on all threads until the fit is interrupted.
  template <typename Task>
  void for_each_parallel(std::size_t count, Task&& task) const {
    std::atomic<std::size_t> next{0};
    pool_.run([&](int) {
      for (std::size_t i = next++; i < count; i = next++)
        if (!was_interrupted()) task(i);
    });
  }

  [[nodiscard]] const AnovaOptions& options() const { return options_; }
  [[nodiscard]] const ColumnTable& table() const { return table_; }
  [[nodiscard]] ThreadPool& pool() const { return pool_; }
  [[nodiscard]] AxisCache& axes() { return axes_; }
  [[nodiscard]] const Response& response() const { return response_; }
  [[nodiscard]] const WorkingRows& rows() const { return response_.rows(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Term>>& terms() const { return terms_; }
  [[nodiscard]] const std::vector<double>& predictor() const { return predictor_; }
  [[nodiscard]] double noise_variance() const { return noise_variance_; }
  /// Columns with more than one value.
  [[nodiscard]] const std::vector<Index>& columns() const { return columns_; }
  /// VarianceBlock::Component::penalty of variances that are not shared.
  [[nodiscard]] double penalty() const { return penalty_; }

 private:
  void solve(const std::vector<Index>& kept, const EstimationEffort& effort);
  void update_fitted();

  const AnovaOptions& options_;
  ThreadPool& pool_;
  const ColumnTable& table_;
  AxisCache axes_;
  TermSums sums_;
  Response response_;
  std::vector<Index> columns_;
  std::vector<std::unique_ptr<Term>> terms_;
  VarianceFit fit_;
  double noise_variance_;
  double intercept_ = 0;
  std::vector<double> predictor_;
  double penalty_ = 0;
};

}  // namespace dyad
