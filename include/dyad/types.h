#pragma once

#include <array>
#include <cstddef>
#include <utility>

/// \file
/// Types that several headers of the public API share: the index type and the enumerations of tasks, solvers, file
/// formats and outcomes.

/// Second-order models y = b + w'x + x'Mx with a symmetric low-rank matrix M of any sign, after Lin and Ye (2016), "A
/// Non-convex One-Pass Framework for Generalized Factorization Machine and Rank-One Matrix Sensing".
namespace dyad {

/// Signed type of all sizes and indices.
using Index = std::ptrdiff_t;

/// Type of the target.
enum class Task {
  regression,      ///< real-valued target; Gaussian likelihood, censored at the ends of the target's range
  classification,  ///< two classes; Bernoulli likelihood with the logistic link
};

/// Names of the tasks in options and model files.
inline constexpr std::array task_names{std::pair{"regression", Task::regression},
                                       std::pair{"classification", Task::classification}};

/// Floating-point type of stored parameters.
enum class Precision {
  single_precision,  ///< float
  double_precision,  ///< double
};

/// Format of a file of rows.
enum class Format {
  libsvm,  ///< text, one row per line: `target index:value index:value ...`
  csv,     ///< comma-separated text with a header line
  tsv,     ///< tab-separated text with a header line
  npy,     ///< NumPy array of two dimensions; the targets are in a second file
};

/// Layout of the training rows, which a model stores. It determines how the columns of new rows are matched to
/// features.
enum class Layout {
  table,   ///< columns are matched by name; csv and tsv files
  matrix,  ///< columns are matched by position; npy files and arrays
  sparse,  ///< entries are matched by index; libsvm files and compressed sparse rows
};

/// Returns the layout of the rows that a file of this format contains.
Layout layout_of(Format format);

/// Algorithm that estimates the model.
enum class Solver {
  automatic,    ///< selected by layout, likelihood, size and available memory
  moment,       ///< the method of moments of Lin and Ye (2016): batches, each read once
  kalman,       ///< online Bayesian updates with a variance per parameter; each row is read once
  newton,       ///< Levenberg-Marquardt (damped Gauss-Newton) on cached rows
  variational,  ///< mean-field variational inference by coordinate updates on cached rows
  sampling,     ///< Gibbs sampling on cached rows; the average of the samples is one low-rank model
  anova,        ///< smoothing-spline ANOVA for tables: functions of columns and pairs, variances by REML
};

/// Update rule of the moment solver.
enum class Update {
  one_scan,  ///< reads each batch once (`OneScanSolver`)
  paper,     ///< Algorithm 1 as printed, which reads each batch twice (`PaperSolver`)
};

/// How a run ended.
enum class Outcome {
  converged,    ///< the tolerance was reached
  budget,       ///< all rows were read, or the row budget was used
  diverged,     ///< the estimate was not finite or did not improve
  interrupted,  ///< the `interrupted` hook returned true
};

/// Diagnosis of a fit to measurements or to planted rows.
enum class FitStatus {
  converged,          ///< exact fit, or residuals without structure
  too_few_rows,       ///< not more rows than unknowns
  not_identifiable,   ///< the rows do not determine all unknowns, for example because a column is zero or repeated
  rank_too_small,     ///< the residuals depend on further directions of M
  inconsistent_sign,  ///< targets are negative, but the model has positive values only
  local_minimum,      ///< the fit does not predict rows that it does not contain
  outliers,           ///< the fit excludes rows with large residuals
};

/// Names of the diagnoses in JSON and Python.
inline constexpr std::array fit_status_names{std::pair{"converged", FitStatus::converged},
                                             std::pair{"too_few_rows", FitStatus::too_few_rows},
                                             std::pair{"not_identifiable", FitStatus::not_identifiable},
                                             std::pair{"rank_too_small", FitStatus::rank_too_small},
                                             std::pair{"inconsistent_sign", FitStatus::inconsistent_sign},
                                             std::pair{"local_minimum", FitStatus::local_minimum},
                                             std::pair{"outliers", FitStatus::outliers}};

}  // namespace dyad
