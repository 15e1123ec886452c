#include "solvers/anova/noise/variance_function.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "solvers/anova/model_assembly.h"
#include "solvers/anova/terms.h"

namespace dyad {
namespace {

/// Smallest gain in evidence over a constant variance, as that of a pair.
constexpr double min_noise_gain_nats = 5;
/// Squared residuals are at least this share of their mean, which bounds v(x) from below.
constexpr double min_square_share = 1e-4;
/// Limit on a squared residual divided by the current variance in one step of IRLS.
constexpr double max_square_ratio = 20;
/// Largest leverage that is corrected for.
constexpr double max_leverage = 0.95;
/// Knots of numeric columns. Squares have a relative error of at least sqrt(2) and do not resolve more.
constexpr Index noise_knots = 12;
/// Steps of IRLS, iterations of REML in each of them, and the change of the largest log variance that ends them.
constexpr int max_steps = 8;
constexpr Index step_iterations = 4;
constexpr double log_tolerance = 0.1;
/// Starting value and upper bound of the variance of log v.
constexpr double start_variance = 0.5;
constexpr double max_variance = 4;
/// Rows of which 10 lie outside of the 95% interval.
constexpr std::size_t min_calibration_rows = 200;

/// Functions of single columns and of the prediction.
std::vector<std::unique_ptr<Term>> make_terms(AxisCache& axes, const ColumnTable& table) {
  std::vector<std::unique_ptr<Term>> terms;
  for (Index j = 0; j < std::ssize(table.columns); ++j) {
    if (!axes.distribution(j).is_variable()) continue;
    const bool is_categorical = table.columns[static_cast<std::size_t>(j)].is_categorical;
    auto term = std::make_unique<Term>(axes.get(j, is_categorical ? max_anova_levels : noise_knots));
    term->set_kernels(term->default_kernels());
    for (TermKernel& kernel : term->kernels)
      kernel.theta = start_variance / static_cast<double>(table.columns.size() * term->kernels.size());
    terms.push_back(std::move(term));
  }
  return terms;
}

/// Gamma regression of squares with the working responses eta + y / exp(eta) - 1.
class GammaRegression {
 public:
  GammaRegression(std::vector<std::unique_ptr<Term>>& terms, std::vector<double> squares, std::vector<double> counts,
                  ThreadPool& pool)
      : terms_(terms), squares_(std::move(squares)), sums_(pool) {
    rows_.z = squares_;
    rows_.weights = std::move(counts);
    rows_.update_mean();
    start_ = intercept_ = std::log(rows_.mean);
    eta_.assign(squares_.size(), start_);
    sums_.update(terms_, {}, rows_);
  }

  /// One step of IRLS. Returns the largest change of eta.
  double step() {
    for (std::size_t i = 0; i < eta_.size(); ++i)
      rows_.z[i] = eta_[i] + std::min(max_square_ratio, squares_[i] / std::exp(eta_[i])) - 1;
    rows_.update_mean();
    sums_.update_targets(terms_, rows_);
    std::vector<VarianceBlock> blocks = make_variance_blocks(terms_, sums_.offsets());
    VarianceOptions options;
    options.max_iterations = step_iterations;
    options.max_theta = max_variance;
    fit_ = estimate_variances(sums_.sums(), blocks, fit_.noise_variance > 0 ? fit_.noise_variance : 1, options);
    intercept_ = rows_.mean - sums_.centers().dot(fit_.gamma);
    set_variances(blocks, terms_);
    std::vector<double> next(eta_.size(), intercept_);
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      Term& term = *terms_[t];
      term.values = term.basis * fit_.gamma.segment(sums_.offsets()[t], term.basis.cols());
      add_fitted(term.rows(), term.values, next);
    }
    double change = 0;
    for (std::size_t i = 0; i < next.size(); ++i) change = std::max(change, std::abs(next[i] - eta_[i]));
    eta_ = std::move(next);
    return change;
  }

  /// Gain in log evidence over a constant (Laplace approximation of the quasi-likelihood).
  [[nodiscard]] double gain() const {
    double deviance = 0;
    for (std::size_t i = 0; i < eta_.size(); ++i)
      deviance += rows_.weight(i) * (eta_[i] - start_ + squares_[i] * (std::exp(-eta_[i]) - std::exp(-start_)));
    const CenteredSums& sums = sums_.sums();
    const double penalty = fit_.gamma.dot(sums.h) - fit_.gamma.dot(sums.H * fit_.gamma);
    return -(deviance + 0.5 * penalty) / fit_.noise_variance + fit_.root.diagonal().array().log().sum();
  }

  [[nodiscard]] double intercept() const { return intercept_; }

 private:
  std::vector<std::unique_ptr<Term>>& terms_;
  std::vector<double> squares_;
  TermSums sums_;
  WorkingRows rows_;
  double start_ = 0;
  double intercept_ = 0;
  std::vector<double> eta_;
  VarianceFit fit_;
};

}  // namespace

double ResidualRows::leverage(std::size_t i) const {
  return std::min(max_leverage, precisions[i] * posterior_variances[i] / noise_variance);
}

double ResidualRows::held_out_variance() const {
  double sum = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const double residual = residuals[i] / (1 - leverage(i));
    sum += counts[i] * residual * residual;
  }
  return sum / std::accumulate(counts.begin(), counts.end(), 0.0);
}

AnovaFunctions fit_log_noise(const ResidualRows& rows, ThreadPool& pool) {
  ColumnTable table = rows.table;
  table.columns.push_back({false, rows.predictions});
  AxisCache axes(table, rows.counts);
  std::vector<std::unique_ptr<Term>> terms = make_terms(axes, table);
  std::vector<double> squares(rows.residuals.size());
  double mean = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    squares[i] = rows.residuals[i] * rows.residuals[i] / (1 - rows.leverage(i));
    mean += squares[i] / static_cast<double>(squares.size());
  }
  if (terms.empty() || !(mean > 0)) return {};
  for (double& square : squares) square = std::max(square, min_square_share * mean);
  GammaRegression regression(terms, std::move(squares), rows.counts, pool);
  for (int step = 0; step < max_steps && regression.step() > log_tolerance;) ++step;
  if (!(regression.gain() > min_noise_gain_nats)) return {};
  AnovaFunctions result;
  result.intercept = regression.intercept() - std::log(rows.noise_variance);
  for (const auto& term : terms) {
    AnovaBlock& block = result.blocks.emplace_back();
    block.axes = {std::ssize(result.axes)};
    block.values.assign(term->values.data(), term->values.data() + term->values.size());
    result.axes.push_back(term->first->axis);
  }
  return result;
}

double calibration_factor(const ResidualRows& rows, const std::vector<double>& noise_variances) {
  std::vector<std::pair<double, double>> ratios(noise_variances.size());  // squared standardized residual and count
  double total = 0;
  double sum = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const double rest = 1 - rows.leverage(i);
    const double residual = rows.residuals[i] / rest;
    ratios[i] = {residual * residual / (noise_variances[i] + rows.posterior_variances[i] / rest), rows.counts[i]};
    total += rows.counts[i];
    sum += rows.counts[i] * ratios[i].first;
  }
  if (!(sum > 0)) return 1;
  if (ratios.size() < min_calibration_rows) return std::max(1.0, sum / total);
  std::sort(ratios.begin(), ratios.end());
  const auto quantile = [&](double share) {
    double cumulative = 0;
    for (const auto& [ratio, count] : ratios)
      if ((cumulative += count) >= share * total) return ratio;
    return ratios.back().first;
  };
  // The quantiles of the chi-squared distribution with one degree of freedom are 0.98896 and 3.84146. The derivatives
  // of the coverages with respect to the logarithm of the deviation are 0.484 and 0.229, so that deviations from 68%
  // and 95% are equal in size at a share of 0.229 / (0.484 + 0.229) between the two factors.
  constexpr double upper_share = 0.32;
  const double factor =
      std::pow(quantile(0.68) / 0.98896, 1 - upper_share) * std::pow(quantile(0.95) / 3.84146, upper_share);
  return factor > 0 ? factor : 1;
}

}  // namespace dyad
